//! Copies trees. A copy is completed under a temporary name next to its target and then renamed.

use super::remove::take_apart;
use super::survey::{stat_entry, survey_at};
use super::{Form, StopCheck, Survey, TreeError, names, open_directory_at, parent_of, rename_to_new};
use crate::sys::file::replace::{create_parents, sync_directory};
use crate::sys::file::temporary_name::temporary_name;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, fchmod, mkdirat};
use nix::unistd::symlinkat;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Number of bytes of a file to copy between two cancellation checks.
const STRETCH_BYTES: u64 = 64 * 1024 * 1024;

/// Copies the entry at `from` to `to`, which must not exist. Fails unless the entry matches `planned` both before and
/// after the copy. Creates missing parent directories of `to`, copies symlinks as symlinks, and preserves modes. If
/// stopped, leaves no copy behind.
pub(crate) fn duplicate(from: &Path, to: &Path, planned: &Survey, stop: StopCheck<'_>) -> Result<(), TreeError> {
    publish(copy_to_temporary_name(from, to, planned, stop)?)
}

/// A finished copy under a temporary name, which is removed on drop unless it was renamed into place.
pub(super) struct TreeCopy {
    parent: OwnedFd,
    aside: OsString,
    name: OsString,
    standing: CopyState,
}

#[derive(PartialEq, Eq)]
enum CopyState {
    Aside,
    Published,
}

impl Drop for TreeCopy {
    fn drop(&mut self) {
        if self.standing == CopyState::Aside {
            let _ = unseal(&self.parent, &self.aside);
            let _ = take_apart(&self.parent, &self.aside);
        }
    }
}

/// Gives the owner full access to the directories of a copy, which even the owner may be unable to remove with their
/// original modes.
fn unseal(parent: &OwnedFd, name: &OsStr) -> nix::Result<()> {
    if Form::from_stat(&stat_entry(parent, name)?) != Form::Directory {
        return Ok(());
    }
    let owner = Mode::S_IRWXU;
    nix::sys::stat::fchmodat(parent, name, owner, nix::sys::stat::FchmodatFlags::NoFollowSymlink)?;
    let directory = open_directory_at(parent, name)?;
    for entry in names(&directory)? {
        unseal(&directory, &entry)?;
    }
    Ok(())
}

pub(super) fn copy_to_temporary_name(
    from: &Path,
    to: &Path,
    planned: &Survey,
    stop: StopCheck<'_>,
) -> Result<TreeCopy, TreeError> {
    if let Some(special) = &planned.special {
        return Err(TreeError::Special(special.clone()));
    }
    let (source, old) = parent_of(from)?;
    let same = || Ok::<_, TreeError>(survey_at(&source, old, from, &mut |_, _| {})?.is_same(planned));
    if !same()? {
        return Err(TreeError::Changed);
    }
    create_parents(to)?;
    let (parent, name) = parent_of(to)?;
    if stat_entry(&parent, name).is_ok() {
        return Err(TreeError::Exists);
    }
    let copy = TreeCopy { parent, aside: temporary_name(), name: name.to_owned(), standing: CopyState::Aside };
    copy_entry((&source, old), (&copy.parent, &copy.aside), planned.form, stop)?;
    sync_copy(&copy)?;
    // Parts that were copied earlier may have changed in the meantime.
    if same()? { Ok(copy) } else { Err(TreeError::Changed) }
}

pub(super) fn publish(mut copy: TreeCopy) -> Result<(), TreeError> {
    rename_to_new((&copy.parent, &copy.aside), (&copy.parent, &copy.name))?;
    copy.standing = CopyState::Published;
    sync_directory(&copy.parent);
    Ok(())
}

fn copy_entry(from: (&OwnedFd, &OsStr), to: (&OwnedFd, &OsStr), expected: Form, stop: StopCheck<'_>) -> Result<(), TreeError> {
    if stop() {
        return Err(TreeError::Stopped);
    }
    let stat = stat_entry(from.0, from.1)?;
    let form = Form::from_stat(&stat);
    if form != expected {
        return Err(TreeError::Changed);
    }
    match form {
        Form::File => copy_file(from, to, &stat, stop),
        Form::Link => Ok(symlinkat(readlinkat(from.0, from.1)?.as_os_str(), to.0, to.1)?),
        Form::Directory => copy_directory(from, to, &stat, stop),
        Form::Special => Err(TreeError::Changed),
    }
}

fn copy_file(from: (&OwnedFd, &OsStr), to: (&OwnedFd, &OsStr), stat: &FileStat, stop: StopCheck<'_>) -> Result<(), TreeError> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let source = File::from(openat(from.0, from.1, flags, Mode::empty())?);
    if !source.metadata()?.is_file() {
        return Err(TreeError::Changed);
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(to.0, to.1, flags, Mode::from_bits_truncate(0o600))?);
    while std::io::copy(&mut (&source).take(STRETCH_BYTES), &mut file)? > 0 {
        if stop() {
            return Err(TreeError::Stopped);
        }
    }
    dress(&file, stat)?;
    if cfg!(not(target_os = "linux")) {
        file.sync_all()?;
    }
    Ok(())
}

fn copy_directory(
    from: (&OwnedFd, &OsStr),
    to: (&OwnedFd, &OsStr),
    stat: &FileStat,
    stop: StopCheck<'_>,
) -> Result<(), TreeError> {
    let source = open_directory_at(from.0, from.1)?;
    mkdirat(to.0, to.1, Mode::from_bits_truncate(0o700))?;
    let copy = open_directory_at(to.0, to.1)?;
    for name in names(&source)? {
        let form = Form::from_stat(&stat_entry(&source, &name)?);
        copy_entry((&source, &name), (&copy, &name), form, stop)?;
    }
    Ok(dress(&copy, stat)?)
}

/// Gives the copy the mode of the original. Set-ID bits are dropped, because the copy may have another owner.
fn dress(copy: impl AsFd, stat: &FileStat) -> nix::Result<()> {
    fchmod(copy, Mode::from_bits_truncate(stat.st_mode & 0o1777))
}

/// Syncs the whole copy to disk before it is renamed to its final name.
#[cfg(target_os = "linux")]
fn sync_copy(copy: &TreeCopy) -> Result<(), TreeError> {
    use nix::errno::Errno;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    match openat(&copy.parent, copy.aside.as_os_str(), flags, Mode::empty()) {
        Ok(file) if File::from(file.try_clone()?).metadata()?.is_dir() => Ok(nix::unistd::syncfs(&file)?),
        Ok(file) => Ok(File::from(file).sync_all()?),
        // A symlink has no content. A file that even its owner cannot read is not synced explicitly.
        Err(Errno::ELOOP | Errno::EACCES) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn sync_copy(_: &TreeCopy) -> Result<(), TreeError> {
    Ok(())
}
