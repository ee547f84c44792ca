//! Removal: what goes is gone from its place in one step, and taken apart after.

use super::survey::{identity, look, survey_as, survey_at};
use super::{Form, Survey, TreeError, names, open_directory_at, parent_of, rename_to_new, temporary_name};
use crate::sys::file::replace::sync_directory;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Removes what stands at `real`, if it still is what `planned` says.
pub fn remove(real: &Path, planned: &Survey) -> Result<(), TreeError> {
    let (parent, name) = parent_of(real)?;
    let now = survey_at(&parent, name, real, &mut |_, _| {})?;
    if !now.is_same(planned) {
        return Err(TreeError::Changed);
    }
    if let Some(sealed) = now.sealed {
        return Err(TreeError::Sealed(sealed));
    }
    remove_aside(&parent, name, real, &now)?;
    sync_directory(&parent);
    Ok(())
}

/// First its name goes, so that it is never half there, and so that it can be seen to be the one that was meant.
fn remove_aside(parent: &OwnedFd, name: &OsStr, real: &Path, planned: &Survey) -> Result<(), TreeError> {
    let aside = temporary_name();
    rename_to_new((parent, name), (parent, &aside))?;
    let back = || {
        let _ = rename_to_new((parent, &aside), (parent, name));
    };
    // Another one may have taken the name since it was looked at.
    if look(parent, &aside).map(|stat| identity(&stat)) != Ok(planned.identity) {
        back();
        return Err(TreeError::Changed);
    }
    // What was written into it while it was looked at would go unseen. By its name nobody reaches it any more.
    if planned.form == Form::Directory
        && !survey_as(name, (parent, &aside), real, &mut |_, _| {}).is_ok_and(|now| now.is_same(planned))
    {
        back();
        return Err(TreeError::Changed);
    }
    take_apart(parent, &aside).map_err(|errno| {
        back();
        TreeError::Partly(errno.into())
    })
}

/// Removes a tree entry by entry; nothing outside it can be reached from the descriptors held.
pub(super) fn take_apart(parent: &OwnedFd, name: &OsStr) -> nix::Result<()> {
    if Form::of(&look(parent, name)?) != Form::Directory {
        return unlinkat(parent, name, UnlinkatFlags::NoRemoveDir);
    }
    let directory = open_directory_at(parent, name)?;
    for entry in names(&directory)? {
        take_apart(&directory, &entry)?;
    }
    unlinkat(parent, name, UnlinkatFlags::RemoveDir)
}
