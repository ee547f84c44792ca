//! Path states in a form that can be stored and compared.

use super::file_stat::{EntryStat, stat};
use super::objects::Objects;
use crate::ports::{ContentId, StoredState};
use crate::sys::file::FileStamp;
use crate::sys::path::is_without_links;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum directory depth to descend to.
const MAX_DEPTH: usize = 128;

/// State of a path, with a mark for comparison. Equal marks mean that the states are equal.
pub(super) struct ScannedState {
    pub stood: StoredState,
    pub mark: Vec<u8>,
    pub why: Option<String>,
    pub bytes: u64,
}

impl ScannedState {
    pub(super) fn from_stored(stood: StoredState) -> Self {
        let bytes = if let StoredState::File { bytes, .. } = stood { bytes } else { 0 };
        Self { mark: mark(&stood), stood, why: None, bytes }
    }

    /// Creates a state whose content is not stored. The mark includes the stamp, so it changes whenever the file does.
    pub(super) fn not_stored(stamp: FileStamp, why: String) -> Self {
        let mut mark = mark(&StoredState::Unkept);
        for number in [stamp.inode, stamp.bytes, stamp.modified, stamp.mode] {
            mark.extend(number.to_le_bytes());
        }
        Self { stood: StoredState::Unkept, mark, why: Some(why), bytes: 0 }
    }

    /// Returns the current state of a path. Content larger than `limit` bytes is not read.
    pub(super) fn now(path: &Path, limit: u64) -> Self {
        match stat(path) {
            Ok(EntryStat::Missing) => Self::from_stored(StoredState::Missing),
            Ok(EntryStat::Link(_, to)) => Self::from_stored(StoredState::Link { to }),
            Ok(EntryStat::File(stamp)) => match Objects::hash(path, limit) {
                Ok(Some((content, bytes))) => Self::from_stored(StoredState::File { content, bytes, mode: stamp.permissions() }),
                Ok(None) => Self::not_stored(stamp, format!("over the limit of {limit} bytes per file")),
                Err(error) => Self::not_stored(stamp, error.to_string()),
            },
            Ok(EntryStat::Special(_)) if is_directory(path) => Self::from_stored(StoredState::Missing),
            Ok(EntryStat::Special(stamp)) => Self::not_stored(stamp, "neither a file nor a symlink".to_owned()),
            Err(error) => Self::not_stored(FileStamp::default(), error.to_string()),
        }
    }
}

pub(super) fn mark(stood: &StoredState) -> Vec<u8> {
    match stood {
        StoredState::Missing => vec![0],
        StoredState::File { content, bytes, mode } => [&[1][..], &content.0, &mode.to_le_bytes(), &bytes.to_le_bytes()].concat(),
        StoredState::Link { to } => [&[2], to.as_os_str().as_bytes()].concat(),
        StoredState::Unkept => vec![3],
    }
}

/// Returns the state that a mark encodes. If the mark cannot be decoded, the content is treated as not stored.
pub(super) fn parse_mark(mark: &[u8]) -> StoredState {
    match mark {
        [0] => StoredState::Missing,
        [1, rest @ ..] if rest.len() == 44 => {
            let (mut id, mut mode, mut bytes) = ([0; 32], [0; 4], [0; 8]);
            id.copy_from_slice(&rest[..32]);
            mode.copy_from_slice(&rest[32..36]);
            bytes.copy_from_slice(&rest[36..]);
            StoredState::File { content: ContentId(id), bytes: u64::from_le_bytes(bytes), mode: u32::from_le_bytes(mode) }
        }
        [2, to @ ..] => StoredState::Link { to: PathBuf::from(OsStr::from_bytes(to)) },
        _ => StoredState::Unkept,
    }
}

/// Returns whether the path is a directory that can be reached without following symlinks.
pub(super) fn is_directory(path: &Path) -> bool {
    is_listed_directory(path) && is_without_links(path)
}

fn is_listed_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Returns the path itself or, if it is a directory, up to `most` paths below it that are not directories. Also returns
/// the number of paths that were omitted.
pub(super) fn walk_below(path: &Path, most: usize) -> (Vec<PathBuf>, u64) {
    let (mut found, mut more) = (Vec::new(), 0);
    let mut waiting = vec![(path.to_owned(), 0)];
    while let Some((path, depth)) = waiting.pop() {
        let is_directory = if depth == 0 { is_directory(&path) } else { is_listed_directory(&path) };
        let entries = if is_directory { std::fs::read_dir(&path).ok() } else { None };
        match entries {
            Some(entries) if depth < MAX_DEPTH && found.len() < most => {
                waiting.extend(entries.flatten().map(|entry| (entry.path(), depth + 1)));
            }
            Some(_) => more += 1,
            None if found.len() < most => found.push(path),
            None => more += 1,
        }
    }
    (found, more)
}
