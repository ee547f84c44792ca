//! Deletes a view with all its contents, however deep they are and whatever their modes.

use crate::sys::file::tree::names;
use crate::sys::path::open_parent;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Maximum number of nested directories to keep open at once.
const MAX_HELD: usize = 64;

/// Deletes a view's directory with its contents. Nothing outside the directory can be reached.
pub(crate) fn discard(preview: &Path) -> io::Result<()> {
    let (parent, name) = match open_parent(preview) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    remove_tree(&parent, name)
}

pub(super) fn remove_tree(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let mut aside = Vec::new();
    let removed = take_apart(parent, name, (parent, &mut aside), 0);
    // Directories that were nested too deeply were moved here under temporary names.
    while let Some(name) = aside.pop() {
        take_apart(parent, &name, (parent, &mut aside), 0)?;
    }
    match removed {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn take_apart(parent: &OwnedFd, name: &OsStr, deep: (&OwnedFd, &mut Vec<OsString>), depth: usize) -> nix::Result<()> {
    let stat = fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if stat.st_mode & libc::S_IFMT != libc::S_IFDIR {
        return unlinkat(parent, name, UnlinkatFlags::NoRemoveDir);
    }
    if stat.st_mode & 0o700 != 0o700 {
        fchmodat(parent, name, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)?;
    }
    if depth >= MAX_HELD {
        let aside = OsString::from(format!(".aye-{}", uuid::Uuid::new_v4().simple()));
        renameat(parent, name, deep.0, aside.as_os_str())?;
        deep.1.push(aside);
        return Ok(());
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = openat(parent, name, flags, Mode::empty())?;
    for entry in names(&directory)? {
        take_apart(&directory, &entry, (deep.0, &mut *deep.1), depth + 1)?;
    }
    unlinkat(parent, name, UnlinkatFlags::RemoveDir)
}
