//! API keys and tokens, which are saved in the system keyring or, if there is none, in a private file. The file also
//! records where each key is saved, so aye queries the keyring only for keys that it contains.

use super::{ApiKey, ConfigError, Directories, KeyCommand};
use crate::protocol::Problem;
use crate::sys::file::private::{self, PrivateError};
use crate::sys::keyring::{self, KeyringError};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use toml::de::DeTable;

#[cfg(test)]
mod tests;

/// Prefix of names under which MCP tokens are saved. It is followed by the server name and a hash of the URL for which
/// the token was issued.
const OF_SERVER: &str = "mcp:";
/// Maximum size of the credentials file in bytes.
const FILE_BYTES: u64 = 256 << 10;
/// Maximum number of secrets obtained during this run to redact. Older ones will have expired.
const MAX_OBTAINED: usize = 64;
/// Timeout for reading from the keyring. If the keyring is locked, it prompts the user, who may be away.
const READING: Duration = Duration::from_secs(5);
/// Timeout for changing the keyring. Changes are requested by the user, who is therefore there to unlock it.
const CHANGING: Duration = Duration::from_secs(60);
const HEAD: &str = "# Written by `aye auth`. `keyring = true`: the key is in the system keyring. Only you may read this file.\n";

/// Where a key is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyStorage {
    Keyring,
    File,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Keyring,
    Key(ApiKey),
}

/// Reason why a key was not saved in the keyring.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyringFailure {
    #[error("{0}")]
    Keyring(#[from] KeyringError),
    #[error("{0}")]
    File(#[from] ConfigError),
}

type Entries = BTreeMap<String, Entry>;
type Read = Result<Arc<Entries>, ConfigError>;

/// Saved keys, which are read on demand. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    /// Credentials file. `None` if this run uses no saved keys.
    file: Option<PathBuf>,
    read: Arc<Mutex<Option<Read>>>,
    /// Results of earlier keyring queries.
    cached: Arc<Mutex<BTreeMap<String, Result<ApiKey, String>>>>,
    /// Keys that another process replaced after this process had read them. They must still be redacted.
    replaced: Arc<Mutex<Vec<ApiKey>>>,
    /// Keys printed by the user's programs, by provider, and other secrets obtained during this run.
    obtained: Arc<ObtainedKeys>,
}

/// Secrets that were obtained during this run and are not saved.
#[derive(Debug, Default)]
struct ObtainedKeys {
    printed: Mutex<BTreeMap<String, PrintedKey>>,
    /// Lock that is held while a program runs, which ensures that only one runs at a time.
    turn: Mutex<()>,
    secrets: Mutex<VecDeque<ApiKey>>,
    changed: Notify,
}

/// Key printed by a program.
#[derive(Debug, Clone)]
struct PrintedKey {
    key: ApiKey,
    argv: Vec<String>,
    at: Instant,
}

impl From<PrivateError> for ConfigError {
    fn from(error: PrivateError) -> Self {
        let remedy = error.remedy();
        let problem = Problem::new(error.to_string());
        Self::single(remedy.into_iter().fold(problem, Problem::hint))
    }
}

impl Credentials {
    pub(crate) fn in_directories(directories: &Directories) -> Self {
        Self { file: Some(directories.config.join("credentials.toml")), ..Self::none() }
    }

    /// Returns credentials that contain no keys.
    pub(crate) fn none() -> Self {
        let (read, cached, replaced, obtained) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
        Self { file: None, read, cached, replaced, obtained }
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    fn entries(&self) -> Read {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || self.file.as_deref().map_or_else(|| Ok(Entries::new()), read).map(Arc::new);
        known.get_or_insert_with(read).clone()
    }

    /// Discards the cached file content, because another process may have changed the file.
    pub(crate) fn reload(&self) {
        let before = self.known_values().into_iter().map(ApiKey::new).collect();
        *self.replaced.lock().unwrap_or_else(PoisonError::into_inner) = before;
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the providers for which a key is saved.
    pub(crate) fn names(&self) -> Result<Vec<String>, ConfigError> {
        Ok(self.entries()?.keys().filter(|name| !name.starts_with(OF_SERVER)).cloned().collect())
    }

    /// Returns the names under which tokens of an MCP server are saved, for any of its URLs.
    pub(crate) fn server_token_names(&self, server: &str) -> Result<Vec<String>, ConfigError> {
        let start = format!("{OF_SERVER}{server}:");
        Ok(self.entries()?.keys().filter(|name| name.starts_with(&start)).cloned().collect())
    }

    /// Returns a key like `secret` but ignores cached values, because another process may have replaced the key.
    pub(crate) fn secret_uncached(&self, name: &str) -> Result<Option<ApiKey>, String> {
        self.reload();
        if let Some(Ok(old)) = self.cached.lock().unwrap_or_else(PoisonError::into_inner).remove(name) {
            self.replaced.lock().unwrap_or_else(PoisonError::into_inner).push(old);
        }
        self.secret(name)
    }

    /// Returns where a provider's key is saved, or `None` if it is not. Does not query the keyring.
    pub(crate) fn storage_of(&self, provider: &str) -> Result<Option<KeyStorage>, ConfigError> {
        Ok(self.entries()?.get(provider).map(|entry| match entry {
            Entry::Keyring => KeyStorage::Keyring,
            Entry::Key(_) => KeyStorage::File,
        }))
    }

    /// Returns a provider's key if it is saved in the file. Does not query the keyring.
    pub(crate) fn file_secret(&self, provider: &str) -> Result<Option<ApiKey>, ConfigError> {
        Ok(match self.entries()?.get(provider) {
            Some(Entry::Key(key)) => Some(key.clone()),
            Some(Entry::Keyring) | None => None,
        })
    }

    /// Returns a provider's key from the file or the keyring. This may wait several seconds for the keyring.
    pub(crate) fn secret(&self, provider: &str) -> Result<Option<ApiKey>, String> {
        match self.entries().map_err(|error| error.to_string())?.get(provider) {
            Some(Entry::Key(key)) => Ok(Some(key.clone())),
            Some(Entry::Keyring) => self.keyring_secret(provider).map(Some),
            None => Ok(None),
        }
    }

    fn keyring_secret(&self, provider: &str) -> Result<ApiKey, String> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(secret)) = cached.get(provider) {
            return Ok(secret.clone());
        }
        let secret = match keyring::get(provider, READING) {
            Ok(Some(key)) => Ok(ApiKey::new(key.trim())),
            Ok(None) => {
                Err(format!("the keyring no longer has a key for `{provider}`; run `aye auth login {provider}` to save one"))
            }
            Err(error) => Err(error.to_string()),
        };
        cached.insert(provider.to_owned(), secret.clone());
        secret
    }

    /// Returns the key that a provider's program prints. The program is run if it has not been run yet, or if the key
    /// that it printed has expired or was rejected.
    pub(crate) fn program_key<E>(
        &self,
        provider: &str,
        command: &KeyCommand,
        rejected: Option<&str>,
        run: impl FnOnce() -> Result<String, E>,
    ) -> Result<ApiKey, E> {
        let _turn = self.obtained.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let printed = self.obtained.printed.lock().unwrap_or_else(PoisonError::into_inner).get(provider).cloned();
        let valid = |printed: &PrintedKey| {
            printed.argv == command.argv
                && command.lifetime.is_none_or(|lifetime| printed.at.elapsed() < lifetime)
                && rejected.is_none_or(|rejected| rejected != printed.key.reveal())
        };
        if let Some(printed) = printed.filter(valid) {
            return Ok(printed.key);
        }
        let key = ApiKey::new(run()?);
        self.remember(key.clone());
        let printed = PrintedKey { key: key.clone(), argv: command.argv.clone(), at: Instant::now() };
        self.obtained.printed.lock().unwrap_or_else(PoisonError::into_inner).insert(provider.to_owned(), printed);
        Ok(key)
    }

    /// Adds a secret that was obtained during this run, to ensure that it is redacted.
    pub(crate) fn remember(&self, secret: ApiKey) {
        let mut secrets = self.obtained.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if secrets.contains(&secret) {
            return;
        }
        if secrets.len() >= MAX_OBTAINED {
            secrets.pop_front();
        }
        secrets.push_back(secret);
        self.obtained.changed.notify_one();
    }

    /// Waits until another secret has been obtained, which the caller must then redact.
    pub(crate) async fn wait_for_new_secret(&self) {
        self.obtained.changed.notified().await;
    }

    /// Returns all keys that are in memory or in the file, for use in redaction.
    pub(crate) fn known_values(&self) -> Vec<String> {
        let entries = self.entries().unwrap_or_default();
        let of_file = entries.values().filter_map(|entry| match entry {
            Entry::Key(key) => Some(key.clone()),
            Entry::Keyring => None,
        });
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        let obtained = self.obtained.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let all = of_file.chain(cached.values().flatten().cloned()).chain(replaced.iter().cloned());
        let all = all.chain(obtained.iter().cloned());
        let mut values: Vec<String> = all.flat_map(|key| secret_parts(&key)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Saves a key in the keyring, and records in the file that it is saved there.
    pub(crate) fn keep_in_keyring(&self, provider: &str, key: &ApiKey) -> Result<(), KeyringFailure> {
        keyring::set(provider, key.reveal(), CHANGING)?;
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).insert(provider.to_owned(), Ok(key.clone()));
        self.note(provider, Entry::Keyring)?;
        Ok(())
    }

    /// Saves a key in the file.
    pub(crate) fn keep_in_file(&self, provider: &str, key: &ApiKey) -> Result<(), ConfigError> {
        self.note(provider, Entry::Key(key.clone()))
    }

    fn note(&self, provider: &str, entry: Entry) -> Result<(), ConfigError> {
        self.change(|entries| {
            entries.insert(provider.to_owned(), entry);
        })
    }

    /// Deletes a saved key. Returns where it was saved, or `None` if it was not.
    pub(crate) fn forget(&self, provider: &str) -> Result<Option<KeyStorage>, ConfigError> {
        let kept = self.storage_of(provider)?;
        if kept == Some(KeyStorage::Keyring) {
            let gone = keyring::delete(provider, CHANGING);
            gone.map_err(|error| {
                let what = format!("cannot delete the key for `{provider}` from the keyring");
                ConfigError::single(Problem::new(what).because(error))
            })?;
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
            Ok((!entries.is_empty()).then(|| format_entries(&entries).into_bytes()))
        })
        .map_err(|error: ConfigError| with_path(path, error))?;
        self.reload();
        Ok(())
    }
}

/// Returns the name under which a server's tokens for this URL are saved.
pub(crate) fn server_key(server: &str, url: &str) -> String {
    let hash = blake3::hash(url.as_bytes()).to_hex();
    format!("{OF_SERVER}{server}:{}", hash.get(..16).unwrap_or_default())
}

/// Returns every secret that a key contains: the key as a whole and, if it is JSON, each token in it.
fn secret_parts(key: &ApiKey) -> Vec<String> {
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

fn with_path(path: &Path, error: ConfigError) -> ConfigError {
    let place = format!("`{}`", path.display());
    if error.to_string().starts_with(&place) { error } else { error.with_location(place) }
}

fn read(path: &Path) -> Result<Entries, ConfigError> {
    match private::read(path, FILE_BYTES) {
        Ok(Some(bytes)) => parse(&bytes, path),
        Ok(None) => Ok(Entries::new()),
        Err(error) => Err(with_path(path, error.into())),
    }
}

/// Parses the credentials file. Errors never repeat its content, which includes keys.
fn parse(bytes: &[u8], path: &Path) -> Result<Entries, ConfigError> {
    let wrong = |byte: usize| {
        let line = 1 + bytes.iter().take(byte).filter(|byte| **byte == b'\n').count();
        let expected = "expected `[PROVIDER]` with `key = \"…\"` or `keyring = true`, as written by `aye auth login`";
        ConfigError::single(Problem::new(format!("`{}` line {line}", path.display())).because(expected))
    };
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.valid_up_to()))?;
    let document = DeTable::parse(text).map_err(|error| wrong(error.span().map_or(0, |span| span.start)))?;
    let mut entries = Entries::new();
    for (name, value) in document.get_ref() {
        let table = value.get_ref().as_table().filter(|table| table.len() == 1);
        let Some((key, value)) = table.and_then(|table| table.iter().next()) else { return Err(wrong(name.span().start)) };
        let entry = match (key.get_ref().as_ref(), value.get_ref()) {
            ("key", value) => value.as_str().filter(|key| !key.trim().is_empty()).map(|key| Entry::Key(ApiKey::new(key.trim()))),
            ("keyring", value) => (value.as_bool() == Some(true)).then_some(Entry::Keyring),
            _ => None,
        };
        entries.insert(name.get_ref().to_string(), entry.ok_or_else(|| wrong(key.span().start))?);
    }
    Ok(entries)
}

fn format_entries(entries: &Entries) -> String {
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
