//! Pins of the user's hooks: hashes of the content that the user has reviewed.

use super::trust::write_private;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// Name of the pin file in the config directory.
const FILE: &str = "hooks-pinned.toml";

/// Hashes of the user's hook file and of the programs that it refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookPins {
    #[serde(default)]
    files: BTreeMap<String, String>,
}

impl HookPins {
    /// Reads the pins. If the file does not exist, there are no pins.
    ///
    /// # Errors
    /// Returns an error if the file exists but cannot be read.
    pub(crate) fn read(config: &Path) -> Result<Self, String> {
        let path = config.join(FILE);
        let unreadable = |why: String| format!("cannot read `{}` ({why}); run `aye hooks pin` to rewrite it", path.display());
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error: toml::de::Error| unreadable(error.message().to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    pub(crate) fn hash_of(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(String::as_str)
    }

    pub(crate) fn pin(&mut self, name: &str, hash: String) {
        self.files.insert(name.to_owned(), hash);
    }

    /// Saves the pins, replacing any earlier ones.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn save(&self, config: &Path) -> Result<(), String> {
        let path = config.join(FILE);
        let text = toml::to_string(self).map_err(|error| error.to_string())?;
        write_private(&path, &text).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }
}
