//! Expected path states after a call, known before it runs: after a crash the disk shows whether it ran.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One place before a call and after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceChange {
    pub path: PathBuf,
    pub before: Standing,
    /// None where only the call itself finds out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Standing>,
}

/// What stands at a place. No tool that changes files changes the mode of what was there, so that no mode tells one from the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Standing {
    Nothing,
    /// A file with this content.
    Content {
        hash: String,
    },
    /// A directory, whatever is in it.
    Directory,
    /// A file, a link or a tree, known by how much of each is in it.
    Entry {
        files: u64,
        directories: u64,
        links: u64,
        bytes: u64,
    },
    /// Written by another version.
    #[serde(other)]
    Unreadable,
}
