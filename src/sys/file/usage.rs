//! Measures the disk usage of a tree through directory descriptors, without following symlinks or entering other file
//! systems.

use super::tree::{names, open_directory_at};
use crate::sys::path::open_directory;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum depth. A deeper tree would need more open files than a process may have.
const MAX_DEPTH: usize = 256;
/// Maximum number of entries that are counted. A larger tree is reported as incomplete.
const MAX_ENTRIES: u64 = 5_000_000;

/// Returns the number of bytes that an unprivileged user can still write to the file system that contains `place`.
pub(crate) fn free_bytes(place: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(place).ok()?;
    Some(widen(disk.blocks_available()).saturating_mul(widen(disk.fragment_size())))
}

/// Widens a number whose type differs between systems.
fn widen(number: impl Into<u64>) -> u64 {
    number.into()
}

/// Totals for a path and every entry below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TreeTotals {
    /// Combined length of all files in bytes.
    pub bytes: u64,
    /// Allocated disk space in bytes.
    pub allocated: u64,
    pub files: u64,
    pub directories: u64,
    /// Number of symlinks, devices, FIFOs and sockets.
    pub others: u64,
}

impl TreeTotals {
    pub(crate) fn entries(&self) -> u64 {
        self.files + self.directories + self.others
    }

    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.allocated += other.allocated;
        self.files += other.files;
        self.directories += other.directories;
        self.others += other.others;
    }
}

/// An entry, with the totals for it and everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntryTotals {
    pub path: PathBuf,
    pub is_directory: bool,
    pub sum: TreeTotals,
}

#[derive(Debug, Default)]
pub(crate) struct TreeUsage {
    pub sum: TreeTotals,
    /// Number of additional hard links to files that had already been counted.
    pub further_names: u64,
    /// Directories on other file systems, which are not counted.
    pub other_file_systems: Vec<PathBuf>,
    /// Directories that could not be read, each with the reason.
    pub unread: Vec<(PathBuf, String)>,
    /// Whether the limit was reached before every entry was counted.
    pub is_cut: bool,
}

/// Callbacks and limits for a count.
pub(crate) struct UsageOptions<'a> {
    /// Maximum depth below the start at which subtotals are reported.
    pub depth: usize,
    pub may_see: &'a dyn Fn(&Path) -> bool,
    pub stopped: &'a dyn Fn() -> bool,
    pub on_part: &'a mut dyn FnMut(EntryTotals),
}

/// Counts everything below the directory at `real`. Returns `Ok(None)` if stopped.
pub(crate) fn usage(real: &Path, watch: &mut UsageOptions<'_>) -> io::Result<Option<TreeUsage>> {
    let directory = open_directory(real)?;
    let own = fstatat(&directory, ".", AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let mut count = UsageCounter { usage: TreeUsage::default(), seen: HashSet::new(), entries: 0, device: own.st_dev, watch };
    let mut sum = TreeTotals { directories: 1, allocated: on_disk(&own), ..TreeTotals::default() };
    let whole = count.directory(&directory, real, 0, &mut sum)?;
    Ok(whole.then_some(TreeUsage { sum, ..count.usage }))
}

struct UsageCounter<'a, 'b> {
    usage: TreeUsage,
    /// Device and inode of every file with several hard links that has already been counted.
    seen: HashSet<(libc::dev_t, libc::ino_t)>,
    entries: u64,
    device: libc::dev_t,
    watch: &'a mut UsageOptions<'b>,
}

impl UsageCounter<'_, '_> {
    /// Counts a directory. Returns `Ok(false)` if stopped.
    fn directory(&mut self, directory: &OwnedFd, real: &Path, depth: usize, sum: &mut TreeTotals) -> io::Result<bool> {
        for name in names(directory)? {
            if (self.watch.stopped)() {
                return Ok(false);
            }
            let path = real.join(&name);
            if !(self.watch.may_see)(&path) {
                continue;
            }
            if self.entries >= MAX_ENTRIES {
                self.usage.is_cut = true;
                return Ok(true);
            }
            // An entry that was removed in the meantime uses no space.
            let Ok(stat) = fstatat(directory, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
            self.entries += 1;
            let is_directory = stat.st_mode & libc::S_IFMT == libc::S_IFDIR;
            if is_directory && stat.st_dev != self.device {
                self.usage.other_file_systems.push(path);
                continue;
            }
            let mut part = if is_directory { TreeTotals::default() } else { self.count_single(&stat) };
            if is_directory {
                part = TreeTotals { directories: 1, allocated: on_disk(&stat), ..TreeTotals::default() };
                if !self.count_below(directory, &name, &path, depth, &mut part)? {
                    return Ok(false);
                }
            }
            sum.add(&part);
            if depth < self.watch.depth {
                (self.watch.on_part)(EntryTotals { path, is_directory, sum: part });
            }
        }
        Ok(true)
    }

    fn count_below(
        &mut self,
        parent: &OwnedFd,
        name: &std::ffi::OsStr,
        path: &Path,
        depth: usize,
        part: &mut TreeTotals,
    ) -> io::Result<bool> {
        if depth + 1 >= MAX_DEPTH {
            self.usage.unread.push((path.to_owned(), format!("more than {MAX_DEPTH} nested directories")));
            return Ok(true);
        }
        let opened = open_directory_at(parent, name).map_err(io::Error::from);
        match opened.and_then(|directory| self.directory(&directory, path, depth + 1, part)) {
            Ok(whole) => Ok(whole),
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => Ok(true),
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
                    _ => error.to_string(),
                };
                self.usage.unread.push((path.to_owned(), why));
                Ok(true)
            }
        }
    }

    fn count_single(&mut self, stat: &FileStat) -> TreeTotals {
        let is_file = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
        if !is_file {
            return TreeTotals { others: 1, allocated: on_disk(stat), ..TreeTotals::default() };
        }
        if stat.st_nlink > 1 && !self.seen.insert((stat.st_dev, stat.st_ino)) {
            self.usage.further_names += 1;
            return TreeTotals { files: 1, ..TreeTotals::default() };
        }
        TreeTotals {
            files: 1,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            allocated: on_disk(stat),
            ..TreeTotals::default()
        }
    }
}

fn on_disk(stat: &FileStat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}
