//! States of paths before and after a call, predicted before it runs. After a crash, they show whether the call ran.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// State of one path before and after a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceChange {
    pub path: PathBuf,
    pub before: PathState,
    /// `None` if the state is only known after the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<PathState>,
}

/// State of a path, without its mode: no file tool changes the mode of an existing file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PathState {
    Nothing,
    /// File with this content.
    Content {
        hash: String,
    },
    /// Directory with any content.
    Directory,
    /// File, symlink or tree, identified by its number of entries and bytes.
    Entry {
        files: u64,
        directories: u64,
        links: u64,
        bytes: u64,
    },
    /// The record was written by another version of aye.
    #[serde(other)]
    Unreadable,
}
