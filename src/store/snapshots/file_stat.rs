//! File stat: the kind and the stamp of a path, determined without opening it.

use crate::sys::file::FileStamp;
use crate::sys::path::{is_symlink_error, open_file, open_parent, read_link};
use std::io;
use std::path::{Path, PathBuf};

pub(super) enum EntryStat {
    Missing,
    File(FileStamp),
    Link(FileStamp, PathBuf),
    /// Neither a file nor a symlink; its content cannot be stored.
    Special(FileStamp),
}

/// Examines a path. A path that is only reachable through a symlink in its directory part counts as missing, because it
/// belongs to another path.
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

/// Returns whether a path does not exist, or exists only through a symlink.
fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || is_symlink_error(error)
}

/// Examines a path from a list created without following symlinks.
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

/// Opens a file and returns its stamp. Data read from the file belongs to this stamp if the stamp is the same
/// afterwards.
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
