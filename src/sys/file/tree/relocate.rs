//! Moving: a rename where the system has one, else a whole copy before the old one goes.

use super::duplicate::{copy_aside, publish};
use super::survey::{identity, look, survey_at};
use super::{Stop, Survey, TreeError, parent_of, rename_to_new};
use crate::sys::file::replace::{create_parents, sync_directory};
use nix::errno::Errno;
use std::path::Path;

/// Moves what stands at `from` to `to`, where nothing may stand, if it still is what `planned` says. Missing directories
/// above `to` are made. Stopped, it leaves all where it was.
pub fn relocate(from: &Path, to: &Path, planned: &Survey, stop: Stop<'_>) -> Result<(), TreeError> {
    let (source, old) = parent_of(from)?;
    if !survey_at(&source, old, from, &mut |_, _| {})?.is_same(planned) {
        return Err(TreeError::Changed);
    }
    create_parents(to)?;
    let (destination, new) = parent_of(to)?;
    match rename_to_new((&source, old), (&destination, new)) {
        Ok(()) => {}
        Err(Errno::EXDEV) => return across(from, to, planned, stop),
        Err(errno) => return Err(errno.into()),
    }
    // Another one may have taken the name since it was looked at.
    if look(&destination, new).map(|stat| identity(&stat)) != Ok(planned.identity) {
        let _ = rename_to_new((&destination, new), (&source, old));
        return Err(TreeError::Changed);
    }
    sync_directory(&destination);
    sync_directory(&source);
    Ok(())
}

/// Between file systems: all of it is there, on disk, before any of it goes here.
fn across(from: &Path, to: &Path, planned: &Survey, stop: Stop<'_>) -> Result<(), TreeError> {
    if let Some(sealed) = &planned.sealed {
        return Err(TreeError::Sealed(sealed.clone()));
    }
    let copy = copy_aside(from, to, planned, stop)?;
    publish(copy)?;
    super::remove(from, planned).map_err(|error| TreeError::StillThere(Box::new(error)))
}
