//! Trust record, which is stored in the user's own directory.

use crate::sys::file::{Existing, create_private_directory, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustRecord {
    pub directory: String,
    /// Inode of the directory. A different directory at the same path is a different project.
    pub inode: String,
    /// Git directory, if it is outside the workspace. It is recorded because a worktree can point anywhere.
    pub repository: String,
    /// Hash of each file, by name.
    pub files: BTreeMap<String, String>,
    /// Hash of each instruction file below the workspace. The hash is empty for a file that was found but never
    /// reviewed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nested: BTreeMap<String, String>,
}

impl TrustRecord {
    /// Returns whether the records are equal, not considering the files below the workspace.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let of = |note: &Self| (note.directory.clone(), note.inode.clone(), note.repository.clone(), note.files.clone());
        of(self) == of(other)
    }

    /// Describes how the current state differs from this record.
    pub(crate) fn differences(&self, now: &Self) -> Vec<String> {
        let mut words = Vec::new();
        if self.directory != now.directory || self.inode != now.inode {
            words.push("this is a different directory than the one you trusted".to_owned());
        }
        if self.repository != now.repository {
            words.push("its git directory is in a different location".to_owned());
        }
        for (name, print) in &now.files {
            match self.files.get(name) {
                Some(before) if before == print => {}
                Some(_) => words.push(format!("{name} changed")),
                None => words.push(format!("{name} is new")),
            }
        }
        let gone = self.files.keys().filter(|name| !now.files.contains_key(*name));
        words.extend(gone.map(|name| format!("{name} was removed")));
        words
    }

    pub(crate) fn keep(&self, path: &Path) -> std::io::Result<()> {
        let text = toml::to_string(self).map_err(std::io::Error::other)?;
        write(path, &text)
    }
}

/// Writes a small file for the user, creating its directory if necessary.
pub(in crate::config) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    create_private_directory(path.parent().unwrap_or(path))?;
    write_whole(path, text.as_bytes(), Existing::Replace)
}

/// State of a stored trust record.
pub(crate) enum StoredTrust {
    Nothing,
    Note(TrustRecord),
    /// The record cannot be read, for example because another version of aye wrote it or another user owns it.
    Unreadable,
}

pub(crate) fn read(path: &Path) -> StoredTrust {
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).map_or(StoredTrust::Unreadable, StoredTrust::Note),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => StoredTrust::Nothing,
        Err(_) => StoredTrust::Unreadable,
    }
}
