//! Path states before and after a tool call, predicted before it runs. After a crash, they show whether the call ran.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// State of a single path before and after a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceChange {
    #[serde(with = "super::path_text")]
    pub path: PathBuf,
    pub before: PathState,
    /// State after the call, or `None` if it cannot be predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PathState>,
}

/// State of a path. The file mode is not included, because no file tool changes the mode of an existing file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PathState {
    Nothing,
    /// File with the content that has this hash.
    Content {
        hash: String,
    },
    /// Directory, regardless of its content.
    Directory,
    /// File, symlink or directory tree, identified only by its number of entries and its size in bytes.
    Entry {
        files: u64,
        directories: u64,
        links: u64,
        bytes: u64,
    },
    /// State recorded by another version of aye in a form that this version does not know.
    #[serde(other)]
    Unreadable,
}
