//! File stat: size, time and inode, to detect a change without reading the file.

use crate::sys::path::{open_file, read_link};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A change so close to a look may have left the same stamp behind: the kernel's clock for files ticks this slowly.
const TICK_NS: i64 = 20_000_000;

/// What the system says of a file without opening it. Times are in nanoseconds of the epoch.
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

    /// Whether a file with the same stamp is the same: not when it was changed at about the time it was looked at.
    pub(super) fn is_telling(self, looked_at: i64) -> bool {
        self.changed < looked_at - TICK_NS
    }
}

pub(super) enum Look {
    Missing,
    File(Stamp),
    Link(Stamp, PathBuf),
    /// Neither: nothing of it can be kept.
    Special(Stamp),
}

pub(super) fn look(path: &Path) -> io::Result<Look> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Look::Missing),
        Err(error) => return Err(error),
    };
    let stamp = Stamp::of(&metadata);
    Ok(if metadata.is_file() {
        Look::File(stamp)
    } else if metadata.is_symlink() {
        Look::Link(stamp, PathBuf::from(read_link(path)?))
    } else {
        Look::Special(stamp)
    })
}

/// An open file and its stamp; what is read from it belongs to that stamp if the stamp is the same afterwards.
pub(super) fn open(path: &Path) -> io::Result<(std::fs::File, Stamp)> {
    let file = open_file(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    Ok((file, stamp))
}

pub(super) fn stamp_of(file: &std::fs::File) -> io::Result<Stamp> {
    Ok(Stamp::of(&file.metadata()?))
}

/// Nanoseconds of the epoch.
pub(super) fn now_ns() -> i64 {
    i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}
