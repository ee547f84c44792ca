//! Removes trees. A tree is first renamed, which is atomic, and then deleted.

use super::survey::{identity, stat_entry, survey_as, survey_at};
use super::{Form, Survey, TreeError, names, open_directory_at, parent_of, rename_to_new};
use crate::sys::file::replace::sync_directory;
use crate::sys::file::temporary_name::temporary_name;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Removes the entry at `real`. Fails if the entry does not match `planned`.
pub(crate) fn remove(real: &Path, planned: &Survey) -> Result<(), TreeError> {
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

/// Renames the entry before removing it, so it can be verified and is never visible in a half-removed state.
fn remove_aside(parent: &OwnedFd, name: &OsStr, real: &Path, planned: &Survey) -> Result<(), TreeError> {
    let aside = temporary_name();
    rename_to_new((parent, name), (parent, &aside))?;
    let back = || {
        let _ = rename_to_new((parent, &aside), (parent, name));
    };
    // Another entry may have taken the name since the inspection.
    if stat_entry(parent, &aside).map(|stat| identity(&stat)) != Ok(planned.identity) {
        back();
        return Err(TreeError::Changed);
    }
    // A change during the survey would go unnoticed, so the entry is surveyed again under its new name, which other
    // programs do not know.
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

/// Removes a tree entry by entry. Because it works through directory descriptors, nothing outside the tree can be
/// reached.
pub(super) fn take_apart(parent: &OwnedFd, name: &OsStr) -> nix::Result<()> {
    if Form::from_stat(&stat_entry(parent, name)?) != Form::Directory {
        return unlinkat(parent, name, UnlinkatFlags::NoRemoveDir);
    }
    let directory = open_directory_at(parent, name)?;
    for entry in names(&directory)? {
        take_apart(&directory, &entry)?;
    }
    unlinkat(parent, name, UnlinkatFlags::RemoveDir)
}
