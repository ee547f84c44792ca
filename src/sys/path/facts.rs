//! Facts about a directory entry other than its content.

use super::{open_parent, read_link};
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;
use nix::unistd::{Gid, Group, Uid, User};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Link,
    Fifo,
    Socket,
    CharacterDevice,
    BlockDevice,
}

/// Facts about the entry itself, never about the target of a symlink.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub sort: EntryKind,
    pub bytes: u64,
    /// Space allocated on disk, in bytes.
    pub allocated: u64,
    /// The twelve mode bits that `chmod` can set.
    pub mode: u32,
    pub owner: (u32, Option<String>),
    pub group: (u32, Option<String>),
    /// Number of hard links.
    pub names: u64,
    pub modified: Option<SystemTime>,
    pub accessed: Option<SystemTime>,
    /// Time at which the content, mode, owner or links last changed.
    pub changed: Option<SystemTime>,
    /// Target of the symlink, if the entry is one.
    pub says: Option<OsString>,
}

/// Returns the facts about the entry at `real`, whose parent directories must be free of symlinks.
#[cfg_attr(target_os = "linux", expect(clippy::useless_conversion, reason = "these numbers are narrower on other systems"))]
pub(crate) fn facts(real: &Path) -> io::Result<Facts> {
    let stat = match open_parent(real) {
        Ok((directory, name)) => fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?,
        Err(error) if real.parent().is_some() => return Err(error),
        Err(_) => nix::sys::stat::stat(real)?,
    };
    let sort = match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG => EntryKind::File,
        libc::S_IFDIR => EntryKind::Directory,
        libc::S_IFLNK => EntryKind::Link,
        libc::S_IFIFO => EntryKind::Fifo,
        libc::S_IFSOCK => EntryKind::Socket,
        libc::S_IFBLK => EntryKind::BlockDevice,
        _ => EntryKind::CharacterDevice,
    };
    let user = User::from_uid(Uid::from_raw(stat.st_uid)).ok().flatten().map(|user| user.name);
    let group = Group::from_gid(Gid::from_raw(stat.st_gid)).ok().flatten().map(|group| group.name);
    Ok(Facts {
        sort,
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        // The unit is 512 bytes on every system, regardless of the block size.
        allocated: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
        mode: u32::from(stat.st_mode & 0o7777),
        owner: (stat.st_uid, user),
        group: (stat.st_gid, group),
        names: u64::from(stat.st_nlink),
        modified: time(stat.st_mtime, stat.st_mtime_nsec),
        accessed: time(stat.st_atime, stat.st_atime_nsec),
        changed: time(stat.st_ctime, stat.st_ctime_nsec),
        says: if sort == EntryKind::Link { read_link(real).ok() } else { None },
    })
}

fn time(seconds: i64, nanoseconds: i64) -> Option<SystemTime> {
    let fraction = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    at?.checked_add(fraction)
}
