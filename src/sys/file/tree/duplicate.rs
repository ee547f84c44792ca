//! Copying of trees. The copy is completed under a temporary name next to its target, then renamed.

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

/// Number of bytes of one file copied between two checks for cancellation.
const STRETCH_BYTES: u64 = 64 * 1024 * 1024;

/// Copies the entry at `from` to `to`, which must not exist, if it still matches `planned` at the end. Creates missing
/// directories above `to`. Symlinks are copied as symlinks, and modes are kept. If stopped, leaves nothing behind.
pub(crate) fn duplicate(from: &Path, to: &Path, planned: &Survey, stop: StopCheck<'_>) -> Result<(), TreeError> {
    publish(copy_to_temporary_name(from, to, planned, stop)?)
}

/// A finished copy under a temporary name; removed on drop unless it was renamed.
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

/// Adds permissions to a copied directory, because the original mode can prevent even the owner from removing it.
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
    // Parts that were read earlier may have changed since.
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

/// Sets the mode of the original. Set-ID bits are dropped, because they belonged to content of another owner.
fn dress(copy: impl AsFd, stat: &FileStat) -> nix::Result<()> {
    fchmod(copy, Mode::from_bits_truncate(stat.st_mode & 0o1777))
}

/// Syncs the whole copy to disk before it gets its name.
#[cfg(target_os = "linux")]
fn sync_copy(copy: &TreeCopy) -> Result<(), TreeError> {
    use nix::errno::Errno;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    match openat(&copy.parent, copy.aside.as_os_str(), flags, Mode::empty()) {
        Ok(file) if File::from(file.try_clone()?).metadata()?.is_dir() => Ok(nix::unistd::syncfs(&file)?),
        Ok(file) => Ok(File::from(file).sync_all()?),
        // A symlink has no content; the mode may keep even the owner from reading, and then the system writes it at its own
        // time.
        Err(Errno::ELOOP | Errno::EACCES) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn sync_copy(_: &TreeCopy) -> Result<(), TreeError> {
    Ok(())
}
