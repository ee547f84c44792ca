//! Restores a single path to an earlier state (a file, a symlink or no entry), provided that the path has not changed
//! since it was inspected.

use super::replace::{
    Parents, WriteError, create_parents, parent_error, replace_with, stat_entry, stat_if_unchanged, sync_directory,
};
use super::temporary_name::temporary_name;
use super::tree::rename_to_new;
use super::{PreImage, tree::TreeError};
use crate::sys::path::open_parent;
use nix::errno::Errno;
use nix::fcntl::readlinkat;
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Mode bits that are restored, which exclude the set-ID bits.
const MODE: u32 = 0o1777;

/// State that a path had when it was inspected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CurrentState {
    Nothing,
    File { hash: blake3::Hash, mode: u32 },
    Link { to: PathBuf },
}

/// State to restore.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TargetState<'a> {
    Nothing,
    File { content: &'a [u8], mode: u32 },
    Link { to: &'a Path },
}

/// Restores the path to `wanted`. Fails if its current state is not `found`. On error, the path is unchanged.
pub(crate) fn restore(real: &Path, found: &CurrentState, wanted: TargetState<'_>) -> Result<(), WriteError> {
    match (found, wanted) {
        (CurrentState::Nothing, TargetState::Nothing) => Ok(()),
        (_, TargetState::Nothing) => remove(real, found),
        (CurrentState::File { hash, mode: now }, TargetState::File { content, mode }) => {
            let same = blake3::hash(content) == *hash;
            if !same {
                // The file may have become read-only. Its final mode is set below.
                let sealed = now & 0o200 == 0;
                if sealed {
                    set_mode(real, now | 0o200)?;
                }
                let replaced = replace_with(real, |file| write(file, content), &PreImage::Content(*hash), Parents::MustExist);
                if replaced.is_err() && sealed {
                    set_mode(real, *now)?;
                }
                replaced?;
            }
            if !same || *now != mode {
                set_mode(real, mode)?;
            }
            Ok(())
        }
        (CurrentState::Nothing, TargetState::File { content, mode }) => {
            let fill = |file: &mut File| {
                write(file, content)?;
                Ok(file.set_permissions(PermissionsExt::from_mode(mode & MODE))?)
            };
            replace_with(real, fill, &PreImage::Absent, Parents::Create)
        }
        (CurrentState::Link { .. }, TargetState::File { content, mode }) => replace_entry(real, found, |directory, name| {
            let flags = nix::fcntl::OFlag::O_WRONLY
                | nix::fcntl::OFlag::O_CREAT
                | nix::fcntl::OFlag::O_EXCL
                | nix::fcntl::OFlag::O_NOFOLLOW
                | nix::fcntl::OFlag::O_CLOEXEC;
            let mut file =
                File::from(nix::fcntl::openat(directory, name, flags, nix::sys::stat::Mode::from_bits_truncate(0o600))?);
            write(&mut file, content)?;
            file.set_permissions(PermissionsExt::from_mode(mode & MODE))?;
            Ok(file.sync_all()?)
        }),
        (_, TargetState::Link { to }) => replace_entry(real, found, |directory, name| Ok(symlinkat(to, directory, name)?)),
    }
}

/// Sets the permission bits of a file. A symlink is an error.
pub(crate) fn set_mode(real: &Path, mode: u32) -> io::Result<()> {
    let permissions = std::fs::Permissions::from_mode(mode & MODE);
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let place = crate::sys::path::hold_place(real)?;
        std::fs::set_permissions(format!("/proc/self/fd/{}", place.as_raw_fd()), permissions)
    }
    #[cfg(not(target_os = "linux"))]
    {
        crate::sys::path::open_file(real)?.set_permissions(permissions)
    }
}

/// Removes a directory if it is empty. Returns whether it was removed.
pub(crate) fn remove_empty_directory(real: &Path) -> io::Result<bool> {
    let (directory, name) = open_parent(real)?;
    match unlinkat(&directory, name, UnlinkatFlags::RemoveDir) {
        Ok(()) => Ok(true),
        Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOENT | Errno::ENOTDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn write(file: &mut File, content: &[u8]) -> Result<(), WriteError> {
    Ok(file.write_all(content)?)
}

fn open_containing(real: &Path) -> Result<(OwnedFd, &OsStr), WriteError> {
    open_parent(real).map_err(|error| parent_error(real, error))
}

fn matches_state(directory: &OwnedFd, name: &OsStr, found: &CurrentState) -> Result<bool, WriteError> {
    Ok(match found {
        CurrentState::Nothing => stat_entry(directory, name)?.is_none(),
        CurrentState::File { hash, .. } => stat_if_unchanged(directory, name, hash).is_ok(),
        CurrentState::Link { to } => readlinkat(directory, name).is_ok_and(|now| Path::new(&now) == to),
    })
}

/// Renames the entry before removing it, so it can be verified under its new name first.
fn remove(real: &Path, found: &CurrentState) -> Result<(), WriteError> {
    let (directory, name) = open_containing(real)?;
    if !matches_state(&directory, name, found)? {
        return Err(WriteError::Changed);
    }
    let aside = temporary_name();
    rename_to_new((&directory, name), (&directory, &aside)).map_err(|errno| match TreeError::from(errno) {
        TreeError::Io(error) => WriteError::Io(error),
        _ => WriteError::Changed,
    })?;
    if !matches_state(&directory, &aside, found)? {
        rename_to_new((&directory, &aside), (&directory, name))?;
        return Err(WriteError::Changed);
    }
    unlinkat(&directory, aside.as_os_str(), UnlinkatFlags::NoRemoveDir)?;
    sync_directory(&directory);
    Ok(())
}

/// Creates the new state under a temporary name and renames it into place. The old entry is removed only if it matches
/// `found`.
fn replace_entry(
    real: &Path,
    found: &CurrentState,
    make: impl FnOnce(&OwnedFd, &OsStr) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    if *found == CurrentState::Nothing {
        create_parents(real)?;
    }
    let (directory, name) = open_containing(real)?;
    if !matches_state(&directory, name, found)? {
        return Err(WriteError::Changed);
    }
    let beside = temporary_name();
    let clear = |errno: WriteError| {
        let _ = unlinkat(&directory, beside.as_os_str(), UnlinkatFlags::NoRemoveDir);
        errno
    };
    make(&directory, &beside).map_err(clear)?;
    if *found == CurrentState::Nothing {
        rename_to_new((&directory, &beside), (&directory, name)).map_err(|errno| match errno {
            Errno::EEXIST => clear(WriteError::Changed),
            errno => clear(errno.into()),
        })?;
    } else {
        swap_if(&directory, (&beside, name), found).map_err(clear)?;
    }
    sync_directory(&directory);
    Ok(())
}

#[cfg(target_os = "linux")]
fn swap_if(directory: &OwnedFd, (beside, name): (&OsStr, &OsStr), found: &CurrentState) -> Result<(), WriteError> {
    use nix::fcntl::{RenameFlags, renameat2};
    match renameat2(directory, beside, directory, name, RenameFlags::RENAME_EXCHANGE) {
        Ok(()) => {}
        Err(Errno::ENOSYS | Errno::EINVAL) => return Ok(nix::fcntl::renameat(directory, beside, directory, name)?),
        Err(errno) => return Err(errno.into()),
    }
    if !matches_state(directory, beside, found)? {
        renameat2(directory, beside, directory, name, RenameFlags::RENAME_EXCHANGE)?;
        return Err(WriteError::Changed);
    }
    Ok(unlinkat(directory, beside, UnlinkatFlags::NoRemoveDir)?)
}

#[cfg(not(target_os = "linux"))]
fn swap_if(directory: &OwnedFd, (beside, name): (&OsStr, &OsStr), _: &CurrentState) -> Result<(), WriteError> {
    Ok(nix::fcntl::renameat(directory, beside, directory, name)?)
}
