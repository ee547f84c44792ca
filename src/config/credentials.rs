//! Keys that `aye auth` keeps: in the keyring of the system, or in a file of one's own where there is none. The file says of
//! each provider which of both it is, so that no keyring is asked for what it does not have.

use super::{ConfigError, Directories, Secret};
use crate::sys::file::private::{self, PrivateError};
use crate::sys::keyring::{self, KeyringError};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use toml::de::DeTable;

#[cfg(test)]
mod tests;

/// What the tokens of a server of tools are kept under: its name, and a hash of the address they were given for.
const OF_SERVER: &str = "mcp:";
/// A file of keys is small.
const FILE_BYTES: u64 = 256 << 10;
/// A keyring that is open answers at once; a locked one asks the person first, who is not always there.
const READING: Duration = Duration::from_secs(5);
/// Who logs in is there to unlock it.
const CHANGING: Duration = Duration::from_secs(60);
const HEAD: &str = "# Written by `aye auth`. `keyring = true`: the key is in the system keyring. Only you may read this file.\n";

/// Where a key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Keyring,
    File,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Keyring,
    Key(Secret),
}

/// Why a key is not in the keyring.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    #[error("{0}")]
    Keyring(#[from] KeyringError),
    #[error("{0}")]
    File(#[from] ConfigError),
}

type Entries = BTreeMap<String, Entry>;
type Read = Result<Arc<Entries>, ConfigError>;

/// The keys that are kept. Cheap to clone; nothing is read before it is asked for.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Absent where nothing is kept at all.
    file: Option<PathBuf>,
    read: Arc<Mutex<Option<Read>>>,
    /// What the keyring said, so that it is asked once.
    told: Arc<Mutex<BTreeMap<String, Result<Secret, String>>>>,
    /// Keys that others replaced since they were read. They are secret all the same.
    replaced: Arc<Mutex<Vec<Secret>>>,
}

impl From<PrivateError> for ConfigError {
    fn from(error: PrivateError) -> Self {
        Self::one(error.to_string())
    }
}

impl Credentials {
    pub fn at(directories: &Directories) -> Self {
        Self { file: Some(directories.config.join("credentials.toml")), ..Self::none() }
    }

    /// Keeps nothing.
    pub fn none() -> Self {
        Self { file: None, read: Arc::default(), told: Arc::default(), replaced: Arc::default() }
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    fn entries(&self) -> Read {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || self.file.as_deref().map_or_else(|| Ok(Entries::new()), read).map(Arc::new);
        known.get_or_insert_with(read).clone()
    }

    /// Others may have kept or forgotten a key since: the file is read again when it is needed.
    pub fn look_again(&self) {
        let before = self.known_values().into_iter().map(Secret::new).collect();
        *self.replaced.lock().unwrap_or_else(PoisonError::into_inner) = before;
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The providers of which a key is kept.
    pub fn names(&self) -> Result<Vec<String>, ConfigError> {
        Ok(self.entries()?.keys().filter(|name| !name.starts_with(OF_SERVER)).cloned().collect())
    }

    /// What is kept for a server of tools, at any address.
    pub fn names_of_server(&self, server: &str) -> Result<Vec<String>, ConfigError> {
        let start = format!("{OF_SERVER}{server}:");
        Ok(self.entries()?.keys().filter(|name| name.starts_with(&start)).cloned().collect())
    }

    /// The same as `secret`, whatever was read before: another process may have put another one there.
    pub fn secret_anew(&self, name: &str) -> Result<Option<Secret>, String> {
        self.look_again();
        if let Some(Ok(old)) = self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(name) {
            self.replaced.lock().unwrap_or_else(PoisonError::into_inner).push(old);
        }
        self.secret(name)
    }

    /// Where the key of a provider is kept, if it is. The keyring is not asked.
    pub fn kept(&self, provider: &str) -> Result<Option<Kept>, ConfigError> {
        Ok(self.entries()?.get(provider).map(|entry| match entry {
            Entry::Keyring => Kept::Keyring,
            Entry::Key(_) => Kept::File,
        }))
    }

    /// The key in the file. The keyring is not asked.
    pub fn of_file(&self, provider: &str) -> Result<Option<Secret>, ConfigError> {
        Ok(match self.entries()?.get(provider) {
            Some(Entry::Key(key)) => Some(key.clone()),
            Some(Entry::Keyring) | None => None,
        })
    }

    /// The key, wherever it is kept. May wait for the keyring, for a few seconds at most.
    pub fn secret(&self, provider: &str) -> Result<Option<Secret>, String> {
        match self.entries().map_err(|error| error.to_string())?.get(provider) {
            Some(Entry::Key(key)) => Ok(Some(key.clone())),
            Some(Entry::Keyring) => self.of_keyring(provider).map(Some),
            None => Ok(None),
        }
    }

    fn of_keyring(&self, provider: &str) -> Result<Secret, String> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(secret)) = told.get(provider) {
            return Ok(secret.clone());
        }
        let secret = match keyring::get(provider, READING) {
            Ok(Some(key)) => Ok(Secret::new(key.trim())),
            Ok(None) => {
                Err(format!("the keyring no longer has a key for `{provider}`; run `aye auth login {provider}` to save one"))
            }
            Err(error) => Err(error.to_string()),
        };
        told.insert(provider.to_owned(), secret.clone());
        secret
    }

    /// Every key that was read until now, and those of the file: what nobody else is to see.
    pub fn known_values(&self) -> Vec<String> {
        let entries = self.entries().unwrap_or_default();
        let of_file = entries.values().filter_map(|entry| match entry {
            Entry::Key(key) => Some(key.clone()),
            Entry::Keyring => None,
        });
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        let all = of_file.chain(told.values().flatten().cloned()).chain(replaced.iter().cloned());
        let mut values: Vec<String> = all.flat_map(|key| parts(&key)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Keeps a key in the keyring, and notes that it is there.
    pub fn keep_in_keyring(&self, provider: &str, key: &Secret) -> Result<(), NotKept> {
        keyring::set(provider, key.reveal(), CHANGING)?;
        self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(provider.to_owned(), Ok(key.clone()));
        self.note(provider, Entry::Keyring)?;
        Ok(())
    }

    /// Keeps a key in the file.
    pub fn keep_in_file(&self, provider: &str, key: &Secret) -> Result<(), ConfigError> {
        self.note(provider, Entry::Key(key.clone()))
    }

    fn note(&self, provider: &str, entry: Entry) -> Result<(), ConfigError> {
        self.change(|entries| {
            entries.insert(provider.to_owned(), entry);
        })
    }

    /// Forgets a key wherever it is kept; where it was.
    pub fn forget(&self, provider: &str) -> Result<Option<Kept>, ConfigError> {
        let kept = self.kept(provider)?;
        if kept == Some(Kept::Keyring) {
            let gone = keyring::delete(provider, CHANGING);
            gone.map_err(|error| ConfigError::one(format!("cannot delete the key for `{provider}` from the keyring: {error}")))?;
        }
        if kept.is_some() {
            self.change(|entries| {
                entries.remove(provider);
            })?;
        }
        Ok(kept)
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) -> Result<(), ConfigError> {
        let Some(path) = &self.file else { return Ok(()) };
        private::update(path, FILE_BYTES, |old| {
            let mut entries = old.map_or_else(|| Ok(Entries::new()), |old| parse(&old, path))?;
            change(&mut entries);
            Ok((!entries.is_empty()).then(|| written(&entries).into_bytes()))
        })
        .map_err(|error: ConfigError| at(path, &error))?;
        self.look_again();
        Ok(())
    }
}

/// The name under which the tokens of a server are kept.
pub fn server_key(server: &str, url: &str) -> String {
    let hash = blake3::hash(url.as_bytes()).to_hex();
    format!("{OF_SERVER}{server}:{}", hash.get(..16).unwrap_or_default())
}

/// What is secret of a key: all of it, or of tokens each by itself.
fn parts(key: &Secret) -> Vec<String> {
    const SECRET: [&str; 4] = ["access_token", "refresh_token", "id_token", "client_secret"];
    fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
        let serde_json::Value::Object(entries) = value else { return };
        for (name, value) in entries {
            match value {
                serde_json::Value::String(text) if SECRET.contains(&name.as_str()) => found.push(text.clone()),
                other => collect(other, found),
            }
        }
    }
    let mut found = vec![key.reveal().to_owned()];
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(key.reveal()) {
        collect(&value, &mut found);
    }
    found
}

fn at(path: &Path, error: &ConfigError) -> ConfigError {
    let (place, text) = (format!("`{}`", path.display()), error.to_string());
    if text.starts_with(&place) { ConfigError::one(text) } else { ConfigError::one(format!("{place}: {text}")) }
}

fn read(path: &Path) -> Result<Entries, ConfigError> {
    match private::read(path, FILE_BYTES) {
        Ok(Some(bytes)) => parse(&bytes, path),
        Ok(None) => Ok(Entries::new()),
        Err(error) => Err(at(path, &error.into())),
    }
}

/// Nothing of the file is repeated in what is wrong with it: it holds keys.
fn parse(bytes: &[u8], path: &Path) -> Result<Entries, ConfigError> {
    let wrong = |byte: usize| {
        let line = 1 + bytes.iter().take(byte).filter(|byte| **byte == b'\n').count();
        ConfigError::one(format!(
            "`{}` line {line}: expected `[PROVIDER]` with `key = \"…\"` or `keyring = true`, as written by `aye auth login`",
            path.display()
        ))
    };
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.valid_up_to()))?;
    let document = DeTable::parse(text).map_err(|error| wrong(error.span().map_or(0, |span| span.start)))?;
    let mut entries = Entries::new();
    for (name, value) in document.get_ref() {
        let table = value.get_ref().as_table().filter(|table| table.len() == 1);
        let Some((key, value)) = table.and_then(|table| table.iter().next()) else { return Err(wrong(name.span().start)) };
        let entry = match (key.get_ref().as_ref(), value.get_ref()) {
            ("key", value) => value.as_str().filter(|key| !key.trim().is_empty()).map(|key| Entry::Key(Secret::new(key.trim()))),
            ("keyring", value) => (value.as_bool() == Some(true)).then_some(Entry::Keyring),
            _ => None,
        };
        entries.insert(name.get_ref().to_string(), entry.ok_or_else(|| wrong(key.span().start))?);
    }
    Ok(entries)
}

fn written(entries: &Entries) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut file = HEAD.to_owned();
    for (name, entry) in entries {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') && !name.is_empty();
        let name = if plain { name.clone() } else { text(name) };
        let _ = match entry {
            Entry::Keyring => writeln!(file, "\n[{name}]\nkeyring = true"),
            Entry::Key(key) => writeln!(file, "\n[{name}]\nkey = {}", text(key.reveal())),
        };
    }
    file
}
