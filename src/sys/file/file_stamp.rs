//! File and directory stamps: size, times, inode and mode, to detect a change without reading the content.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Granularity of file times, in nanoseconds. A change within this time of a check may leave the stamp unchanged.
const TICK_NS: i64 = 20_000_000;

/// Age in seconds below which a changed directory may change again without a newer timestamp.
const DIRECTORY_TICK_SECONDS: i64 = 2;

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
    pub(crate) fn proves_unchanged(self, looked_at: i64) -> bool {
        self.changed < looked_at - TICK_NS
    }
}

/// Metadata that changes whenever a name in the directory is created, removed or replaced. Programs cannot set it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DirectoryStamp {
    device: u64,
    file: FileStamp,
}

impl DirectoryStamp {
    /// Reads the stamp; `None` if the directory cannot be examined.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let metadata = directory.symlink_metadata().ok()?;
        Some(Self { device: metadata.dev(), file: FileStamp::from_metadata(&metadata) })
    }

    /// Returns whether any later change of the directory changes its stamp; false if it has just changed.
    pub(crate) fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        (self.file.changed / 1_000_000_000).saturating_add(DIRECTORY_TICK_SECONDS) < now
    }

    /// Returns the stamp of an earlier change, for tests.
    #[cfg(test)]
    pub(crate) fn earlier(self) -> Self {
        Self { file: FileStamp { changed: self.file.changed - 1_000_000_000, ..self.file }, ..self }
    }
}
