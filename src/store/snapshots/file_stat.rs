//! File stat: size, time and inode, to detect a change without reading the file.

use crate::sys::path::{met_a_link, open_file, open_parent, read_link};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Granularity of file times, in nanoseconds. A change this close to a check may leave the same stamp.
const TICK_NS: i64 = 20_000_000;

/// File metadata read without opening the file. Times are in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp {
    pub inode: i64,
    pub bytes: i64,
    pub modified: i64,
    pub changed: i64,
    pub mode: i64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            inode: metadata.ino().cast_signed(),
            bytes: metadata.size().cast_signed(),
            modified: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed: ns(metadata.ctime(), metadata.ctime_nsec()),
            mode: i64::from(metadata.mode() & 0o7777),
        }
    }

    /// Returns the permission bits.
    pub(super) fn permissions(self) -> u32 {
        u32::try_from(self.mode).unwrap_or(0)
    }

    /// Reports whether an equal stamp proves that the file is unchanged: not if it was changed around the time of the check.
    pub(super) fn is_telling(self, looked_at: i64) -> bool {
        self.changed < looked_at - TICK_NS
    }
}

pub(super) enum EntryStat {
    Missing,
    File(Stamp),
    Link(Stamp, PathBuf),
    /// Neither a file nor a symlink; its content cannot be stored.
    Special(Stamp),
}

/// Examines a path. What is reached only through a symlink in the directory part is missing: it belongs to another path.
pub(super) fn look(path: &Path) -> io::Result<EntryStat> {
    let found = look_listed(path);
    match found {
        Ok(EntryStat::Missing) => return found,
        Err(error) => return if leads_nowhere(&error) { Ok(EntryStat::Missing) } else { Err(error) },
        Ok(_) => {}
    }
    match open_parent(path) {
        Ok(_) => found,
        Err(error) if leads_nowhere(&error) => Ok(EntryStat::Missing),
        Err(error) => Err(error),
    }
}

/// Returns whether a path does not exist, or only through a symlink.
fn leads_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || met_a_link(error)
}

/// Examines a path from a list that was made without following symlinks.
pub(super) fn look_listed(path: &Path) -> io::Result<EntryStat> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(EntryStat::Missing);
        }
        Err(error) => return Err(error),
    };
    let stamp = Stamp::of(&metadata);
    Ok(if metadata.is_file() {
        EntryStat::File(stamp)
    } else if metadata.is_symlink() {
        EntryStat::Link(stamp, PathBuf::from(read_link(path)?))
    } else {
        EntryStat::Special(stamp)
    })
}

/// Opens a file and returns its stamp. Data read from it belongs to the stamp if the stamp is the same afterwards.
pub(super) fn open(path: &Path) -> io::Result<(std::fs::File, Stamp)> {
    let file = open_file(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    Ok((file, stamp))
}

pub(super) fn stamp_of(file: &std::fs::File) -> io::Result<Stamp> {
    Ok(Stamp::of(&file.metadata()?))
}

/// Returns the current time in nanoseconds since the epoch.
pub(super) fn now_ns() -> i64 {
    i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}
