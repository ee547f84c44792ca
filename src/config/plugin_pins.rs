//! Plugin pins: hashes of the plugin content that the user added.

use super::trust::write_private;
use crate::skills::wrong_name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Name of the pin folder in the config directory.
const FOLDER: &str = "plugins";
const EXTENSION: &str = "toml";
/// Prefix that `tempfile` gives to the names of unfinished files.
const INCOMPLETE: &str = ".tmp";
/// Maximum size in bytes of a file that contains a plugin's pins.
const FILE_BYTES: u64 = 4 << 20;

/// Hash and size of a plugin file when the user added the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePin {
    pub bytes: u64,
    pub hash: String,
}

/// Plugin that the user added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PluginPin {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default)]
    pub description: String,
    /// Folder, repository or archive from which the plugin was added.
    pub source: String,
    /// Plugin folder within the repository or archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Repository commit from which the plugin was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// SHA-256 hash of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_hash: Option<String>,
    pub enabled: bool,
    /// Name of the folder that contains the plugin's files in the data directory.
    pub folder: String,
    /// Pin of each file, by path relative to the plugin folder with `/` as the separator.
    pub files: BTreeMap<String, FilePin>,
}

impl PluginPin {
    /// Returns a hash of all files and their paths.
    pub(crate) fn digest(&self) -> String {
        digest(&self.files)
    }

    /// Reads the pins of a plugin. Returns `None` if it has none.
    ///
    /// # Errors
    /// Returns an error if the file is invalid or cannot be read.
    pub(crate) fn read(config: &Path, name: &str) -> Result<Option<Self>, String> {
        // An invalid name could be a path.
        if wrong_name(name).is_some() {
            return Ok(None);
        }
        let path = path(config, name);
        let unreadable = |why: String| format!("cannot read `{}`: {why}", path.display());
        // Symlinks above the config directory belong to the user.
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let bytes = crate::sys::file::read(&real, FILE_BYTES).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unreadable("the file is not valid UTF-8".to_owned()))?;
        let pin: Self = toml::from_str(&text).map_err(|error: toml::de::Error| unreadable(error.message().to_owned()))?;
        let is_plain = |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let folder = Path::new(&pin.folder);
        if pin.name != name
            || !is_plain(&pin.folder)
            || folder.components().count() != 1
            || !pin.files.keys().all(|path| is_plain(path))
        {
            return Err(unreadable("the file does not describe this plugin".to_owned()));
        }
        Ok(Some(pin))
    }

    /// Reads the pins of all plugins, sorted by name. Also returns a message for each plugin whose pins cannot be read.
    pub(crate) fn read_all(config: &Path) -> (Vec<Self>, Vec<String>) {
        let (mut pins, mut problems) = (Vec::new(), Vec::new());
        let names = names(config).unwrap_or_else(|error| {
            let folder = config.join(FOLDER);
            problems.push(format!("ignored all plugins: cannot read `{}`: {error}; make the folder readable", folder.display()));
            Vec::new()
        });
        for name in names {
            match Self::read(config, &name) {
                Ok(pin) => pins.extend(pin),
                Err(why) => problems.push(format!("ignored the plugin `{name}`: {why}; run `aye plugin remove {name}`")),
            }
        }
        (pins, problems)
    }

    /// Saves the pins, replacing any earlier pins of the same plugin.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn save(&self, config: &Path) -> Result<(), String> {
        let path = path(config, &self.name);
        let text = toml::to_string(self).map_err(|error| error.to_string())?;
        write_private(&path, &text).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }

    /// Removes the pins of a plugin. If there are no other pins, the pin folder is removed as well.
    ///
    /// # Errors
    /// Returns an error if the file cannot be removed.
    pub(crate) fn remove(config: &Path, name: &str) -> Result<(), String> {
        if let Some(why) = wrong_name(name) {
            return Err(why);
        }
        let path = path(config, name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("cannot remove `{}`: {error}", path.display())),
            Ok(()) | Err(_) => {
                // Fails if the folder contains pins of other plugins.
                let _ = std::fs::remove_dir(config.join(FOLDER));
                Ok(())
            }
        }
    }
}

/// Removes unfinished files that interrupted changes left behind.
pub(crate) fn remove_incomplete(config: &Path) {
    for entry in std::fs::read_dir(config.join(FOLDER)).into_iter().flatten().filter_map(Result::ok) {
        if entry.file_name().as_encoded_bytes().starts_with(INCOMPLETE.as_bytes()) {
            // On failure, the next change tries again.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Returns the names of all plugins that have pins, sorted.
///
/// # Errors
/// Returns an error if the pin folder exists but cannot be read.
fn names(config: &Path) -> std::io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(config.join(FOLDER)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION)
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn path(config: &Path, name: &str) -> PathBuf {
    config.join(FOLDER).join(format!("{name}.{EXTENSION}"))
}

/// Returns a hash of all files and their paths.
pub(crate) fn digest(files: &BTreeMap<String, FilePin>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (path, file) in files {
        hasher.update(path.as_bytes()).update(b"\0").update(file.hash.as_bytes()).update(b"\0");
    }
    hasher.finalize().to_hex().to_string()
}
