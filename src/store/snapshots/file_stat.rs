//! File type and stamp of a path, determined without opening the file.

use crate::sys::file::FileStamp;
use crate::sys::path::{is_symlink_error, open_file, open_parent, read_link};
use std::io;
use std::path::{Path, PathBuf};

pub(super) enum EntryStat {
    Missing,
    File(FileStamp),
    Link(FileStamp, PathBuf),
    /// Anything other than a regular file or a symlink. Its content cannot be stored.
    Special(FileStamp),
}

/// Examines a path. A path that leads through a symlink to a directory is treated as missing, because the file belongs
/// to a different path.
pub(super) fn stat(path: &Path) -> io::Result<EntryStat> {
    let found = stat_listed(path);
    match found {
        Ok(EntryStat::Missing) => return found,
        Err(error) => return if is_not_found(&error) { Ok(EntryStat::Missing) } else { Err(error) },
        Ok(_) => {}
    }
    match open_parent(path) {
        Ok(_) => found,
        Err(error) if is_not_found(&error) => Ok(EntryStat::Missing),
        Err(error) => Err(error),
    }
}

/// Returns whether an error means that the path does not exist, or exists only by way of a symlink.
fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || is_symlink_error(error)
}

/// Examines a path taken from a list that was made without following symlinks.
pub(super) fn stat_listed(path: &Path) -> io::Result<EntryStat> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(EntryStat::Missing);
        }
        Err(error) => return Err(error),
    };
    let stamp = FileStamp::from_metadata(&metadata);
    Ok(if metadata.is_file() {
        EntryStat::File(stamp)
    } else if metadata.is_symlink() {
        EntryStat::Link(stamp, PathBuf::from(read_link(path)?))
    } else {
        EntryStat::Special(stamp)
    })
}

/// Opens a file and returns it with its stamp. If the stamp is still the same after reading, the data that was read
/// belongs to it.
pub(super) fn open(path: &Path) -> io::Result<(std::fs::File, FileStamp)> {
    let file = open_file(path)?;
    let stamp = FileStamp::from_metadata(&file.metadata()?);
    Ok((file, stamp))
}

pub(super) fn stamp_of(file: &std::fs::File) -> io::Result<FileStamp> {
    Ok(FileStamp::from_metadata(&file.metadata()?))
}

/// Returns the current time in nanoseconds since the epoch.
pub(super) fn now_ns() -> i64 {
    i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}
