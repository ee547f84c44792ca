//! Moves trees: by renaming if possible, and otherwise by copying the whole tree and then removing the original.

use super::duplicate::{copy_to_temporary_name, publish};
use super::survey::{identity, stat_entry, survey_at};
use super::{StopCheck, Survey, TreeError, parent_of, rename_to_new};
use crate::sys::file::replace::{create_parents, sync_directory};
use nix::errno::Errno;
use std::path::Path;

/// Moves the entry at `from` to `to`, which must not exist. Fails if the entry does not match `planned`. Creates
/// missing parent directories of `to`. If stopped, leaves the entry in place.
pub(crate) fn relocate(from: &Path, to: &Path, planned: &Survey, stop: StopCheck<'_>) -> Result<(), TreeError> {
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
    // Another entry may have taken the name since the inspection.
    if stat_entry(&destination, new).map(|stat| identity(&stat)) != Ok(planned.identity) {
        let _ = rename_to_new((&destination, new), (&source, old));
        return Err(TreeError::Changed);
    }
    sync_directory(&destination);
    sync_directory(&source);
    Ok(())
}

/// Moves an entry to another file system. All data has been written to disk at the target before the source is removed.
fn across(from: &Path, to: &Path, planned: &Survey, stop: StopCheck<'_>) -> Result<(), TreeError> {
    if let Some(sealed) = &planned.sealed {
        return Err(TreeError::Sealed(sealed.clone()));
    }
    let copy = copy_to_temporary_name(from, to, planned, stop)?;
    publish(copy)?;
    super::remove(from, planned).map_err(|error| TreeError::StillThere(Box::new(error)))
}
