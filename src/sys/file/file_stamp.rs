//! File stamp: size, times, inode and mode of a file, to detect a change without reading its content.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Granularity of file times, in nanoseconds. A change within this time of a check may leave the stamp unchanged.
const TICK_NS: i64 = 20_000_000;

/// Metadata of a file, with signed numbers as a database stores them. Times are in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileStamp {
    pub inode: i64,
    pub bytes: i64,
    /// Time of the last write.
    pub modified: i64,
    /// Time of the last change of content or metadata, which programs cannot set.
    pub changed: i64,
    /// Permission bits.
    pub mode: i64,
}

impl FileStamp {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            inode: metadata.ino().cast_signed(),
            bytes: metadata.size().cast_signed(),
            modified: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed: ns(metadata.ctime(), metadata.ctime_nsec()),
            mode: i64::from(metadata.mode() & 0o7777),
        }
    }

    /// Returns the stamp without the change time, which a new hard link or another owner affects too.
    pub(crate) fn without_change_time(self) -> Self {
        Self { changed: 0, ..self }
    }

    /// Returns the permission bits.
    pub(crate) fn permissions(self) -> u32 {
        u32::try_from(self.mode).unwrap_or(0)
    }

    /// Returns whether an equal stamp proves that the file is unchanged; false if the file was changed around the time
    /// of the check.
    pub(crate) fn is_telling(self, looked_at: i64) -> bool {
        self.changed < looked_at - TICK_NS
    }
}
