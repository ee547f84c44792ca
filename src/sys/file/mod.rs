//! File access: size-limited reads, and atomic replacement without intermediate states.

pub(crate) mod append;
mod attributes;
mod below;
mod file_stamp;
mod fingerprint;
mod key_file;
pub(crate) mod private;
mod replace;
mod restore;
mod temporary_name;
#[cfg(test)]
mod tests;
pub(crate) mod transaction;
pub(crate) mod tree;
pub(crate) mod usage;
mod whole_file;

pub(crate) use below::{create_below, read_below};
pub(crate) use file_stamp::{DirectoryStamp, FileStamp};
pub(crate) use fingerprint::Fingerprint;
pub(crate) use key_file::read_or_create;
pub(crate) use replace::{Parents, WriteError, create_directory, lock, replace, replace_with};
pub(crate) use restore::{CurrentState, TargetState, remove_empty_directory, restore, set_mode};
pub(crate) use whole_file::{Existing, PreparedFile, create_private_directory, write_whole};

use super::path::open_file;
use std::io::{self, Read};
use std::path::Path;

/// State of a file when it was last inspected: absent, or the hash of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreImage {
    Absent,
    Content(blake3::Hash),
}

impl PreImage {
    pub(crate) fn hash(content: &[u8]) -> Self {
        Self::Content(blake3::hash(content))
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("{bytes} bytes, more than the {limit} allowed")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads the whole file at a resolved path. Fails if it is larger than `limit` bytes.
pub(crate) fn read(real: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_file(real)?;
    let bytes = file.metadata()?.len();
    if bytes > limit {
        return Err(ReadError::TooLarge { bytes, limit });
    }
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    // A file may grow while it is read, and some files report no size.
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(ReadError::TooLarge { bytes: content.len() as u64, limit });
    }
    Ok(content)
}
