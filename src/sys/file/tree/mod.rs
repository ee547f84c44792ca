//! Operations on whole trees: surveying, removing, moving and copying. They work through directory descriptors, so no
//! symlink is followed.

mod duplicate;
mod relocate;
mod remove;
mod survey;
#[cfg(test)]
mod tests;

pub(crate) use duplicate::duplicate;
pub(crate) use relocate::relocate;
pub(crate) use remove::remove;
pub(crate) use survey::{Form, Survey, survey};

use super::WriteError;
use crate::sys::path::open_parent;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum depth. A deeper tree would need more open files than a process may have.
const MAX_DEPTH: usize = 256;
/// Maximum number of entries. For a larger tree, the user should run a program that shows its progress.
const MAX_ENTRIES: u64 = 500_000;

/// Callback that is invoked periodically during a copy. Returns whether the user wants to stop.
pub(crate) type StopCheck<'a> = &'a dyn Fn() -> bool;

#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    /// The tree changed after it was inspected.
    #[error("the tree changed")]
    Changed,
    #[error("the target already exists")]
    Exists,
    #[error("the directory `{}` does not exist", .0.display())]
    NoParent(PathBuf),
    #[error("no permission to change `{}`", .0.display())]
    Sealed(PathBuf),
    #[error("`{}` is on another file system", .0.display())]
    OtherFileSystem(PathBuf),
    #[error("`{}` is a device, FIFO or socket", .0.display())]
    Special(PathBuf),
    #[error("the tree has more than {MAX_ENTRIES} entries")]
    TooMany,
    #[error("the tree has more than {MAX_DEPTH} nested directories")]
    TooDeep,
    /// The operation was stopped before any change.
    #[error("stopped")]
    Stopped,
    /// The tree was removed only partly. The entries that remain are still at their original path.
    #[error("only partly removed: {0}")]
    Partly(io::Error),
    /// The tree was copied completely, but could not be removed from its old location.
    #[error("copied, but not removed from its old location: {0}")]
    StillThere(Box<TreeError>),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for TreeError {
    fn from(errno: Errno) -> Self {
        match errno {
            // A symlink or another entry has replaced a directory since the path was resolved.
            Errno::ELOOP | Errno::ENOTDIR | Errno::ENOENT => Self::Changed,
            Errno::EEXIST => Self::Exists,
            _ => Self::Io(errno.into()),
        }
    }
}

impl From<WriteError> for TreeError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Changed => Self::Changed,
            WriteError::NoParent(path) => Self::NoParent(path),
            WriteError::ReadOnly => Self::Io(io::Error::from(io::ErrorKind::PermissionDenied)),
            WriteError::Io(error) => Self::from(error),
        }
    }
}

/// Opens the directory that contains `real`. Returns it together with the last component of the path.
fn parent_of(real: &Path) -> Result<(OwnedFd, &OsStr), TreeError> {
    open_parent(real).map_err(|error| match error.raw_os_error().map(Errno::from_raw) {
        Some(errno @ (Errno::ELOOP | Errno::ENOTDIR | Errno::ENOENT)) => errno.into(),
        _ => TreeError::Io(error),
    })
}

/// Opens a directory for listing. Fails if its name refers to a symlink.
pub(in crate::sys) fn open_directory_at(parent: impl AsFd, name: &OsStr) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Returns the sorted names of a directory's entries.
pub(in crate::sys) fn names(directory: &OwnedFd) -> nix::Result<Vec<OsString>> {
    let listing = openat(directory, ".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut names = Vec::new();
    for entry in nix::dir::Dir::from_fd(listing)?.iter() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Renames an entry within its directory without following symlinks. Fails if the new name exists.
pub(crate) fn rename_in_place(real: &Path, name: &OsStr) -> io::Result<()> {
    let (parent, before) = crate::sys::path::open_parent(real)?;
    Ok(rename_to_new((&parent, before), (&parent, name))?)
}

/// Renames an entry. Fails if the new name exists.
pub(in crate::sys) fn rename_to_new(from: (&OwnedFd, &OsStr), to: (&OwnedFd, &OsStr)) -> nix::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{RenameFlags, renameat2};
        match renameat2(from.0, from.1, to.0, to.1, RenameFlags::RENAME_NOREPLACE) {
            // The call or this flag is not supported here.
            Err(Errno::ENOSYS | Errno::EINVAL) => {}
            renamed => return renamed,
        }
    }
    match nix::sys::stat::fstatat(to.0, to.1, nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EEXIST),
        Err(Errno::ENOENT) => nix::fcntl::renameat(from.0, from.1, to.0, to.1),
        Err(errno) => Err(errno),
    }
}
