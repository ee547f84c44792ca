//! File and directory stamps (size, times, inode and mode), which reveal changes without reading the content.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Granularity of file times in nanoseconds. A change made this shortly before a check may leave the stamp unchanged.
const TICK_NS: i64 = 20_000_000;

/// Age, in seconds, below which a directory's change time may fail to reflect a further change.
const DIRECTORY_TICK_SECONDS: i64 = 2;

/// File metadata as signed numbers, the form in which a database stores them. Times are in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileStamp {
    pub inode: i64,
    pub bytes: i64,
    /// Time at which the content was last written.
    pub modified: i64,
    /// Time at which the content or the metadata last changed. Programs cannot set it.
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

    /// Returns the stamp without the change time, which also changes when a hard link is created or the owner changes.
    pub(crate) fn without_change_time(self) -> Self {
        Self { changed: 0, ..self }
    }

    /// Returns the permission bits.
    pub(crate) fn permissions(self) -> u32 {
        u32::try_from(self.mode).unwrap_or(0)
    }

    /// Returns whether an equal stamp proves that the file is unchanged. Returns `false` if the file changed shortly
    /// before the check at `looked_at` (in nanoseconds since the epoch).
    pub(crate) fn proves_unchanged(self, looked_at: i64) -> bool {
        self.changed < looked_at - TICK_NS
    }
}

/// Directory metadata that changes whenever an entry is created, removed or replaced. Programs cannot set it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DirectoryStamp {
    device: u64,
    file: FileStamp,
}

impl DirectoryStamp {
    /// Reads a directory's stamp, or returns `None` if the directory cannot be examined.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let metadata = directory.symlink_metadata().ok()?;
        Some(Self { device: metadata.dev(), file: FileStamp::from_metadata(&metadata) })
    }

    /// Returns whether any further change to the directory is certain to change its stamp. Returns `false` if the
    /// directory has only just changed.
    pub(crate) fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        (self.file.changed / 1_000_000_000).saturating_add(DIRECTORY_TICK_SECONDS) < now
    }

    /// Returns the stamp that the directory would have if it had last changed one second earlier.
    #[cfg(test)]
    pub(crate) fn earlier(self) -> Self {
        Self { file: FileStamp { changed: self.file.changed - 1_000_000_000, ..self.file }, ..self }
    }
}
