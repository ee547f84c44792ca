//! Nodes, which describe the state of one path at one point in time.

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;

/// A file time as seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Time(pub i64, pub i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum NodeKind {
    File,
    Directory,
    Link,
    /// The entry is a socket, FIFO or device.
    Special,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub inode: u64,
    pub bytes: u64,
    /// Permission bits.
    pub mode: u32,
    pub owner: u32,
    pub group: u32,
    /// Number of hard links.
    pub links: u64,
    pub modified: Time,
    /// Time at which the content, metadata or links last changed.
    pub changed: Time,
}

/// Widens a number whose size differs between systems.
fn widen<T>(number: impl Into<T>) -> T {
    number.into()
}

impl Node {
    pub(super) fn from_stat(stat: &FileStat) -> Self {
        Self {
            kind: match stat.st_mode & libc::S_IFMT {
                libc::S_IFREG => NodeKind::File,
                libc::S_IFDIR => NodeKind::Directory,
                libc::S_IFLNK => NodeKind::Link,
                _ => NodeKind::Special,
            },
            inode: stat.st_ino,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mode: widen(stat.st_mode & 0o7777),
            owner: stat.st_uid,
            group: stat.st_gid,
            links: widen(stat.st_nlink),
            modified: Time(stat.st_mtime, stat.st_mtime_nsec),
            changed: Time(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Returns the state of `name` in a directory without following a symlink, or `None` if there is no such entry.
    pub(super) fn at(directory: &OwnedFd, name: &OsStr) -> nix::Result<Option<Self>> {
        match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Self::from_stat(&stat))),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Returns whether `now` describes the same, unchanged entry. For a directory, entries that were added or removed
    /// are ignored.
    pub(super) fn is_still(&self, now: &Self) -> bool {
        let same = (self.kind, self.inode) == (now.kind, now.inode);
        same && (self.kind == NodeKind::Directory
            || (self.bytes, self.modified, self.changed) == (now.bytes, now.modified, now.changed))
    }

    /// Compares like `is_still`, but ignores hard links that were added or removed, even though doing so affects the
    /// file's change time.
    pub(super) fn is_same_except_links(&self, now: &Self) -> bool {
        let attributes = |node: &Self| (node.kind, node.inode, node.bytes, node.mode, node.owners(), node.modified);
        self.is_still(now) || self.links > 1 && attributes(self) == attributes(now)
    }

    /// Returns whether owner or group differ.
    pub(crate) fn owners_differ(&self, other: &Self) -> bool {
        self.owners() != other.owners()
    }

    pub(super) fn owners(&self) -> (u32, u32) {
        (self.owner, self.group)
    }
}
