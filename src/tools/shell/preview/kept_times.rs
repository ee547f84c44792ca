//! Modification times of changes that are applied. They are preserved unless a build may have used the old content in
//! the meantime.

use super::build_directories::find_build_directories;
use super::run::PreviewedCommand;
use crate::sys::overlay::{self, Changes, NodeKind, Time, changed_after};
use std::path::{Path, PathBuf};

/// Maximum number of entries in build directories to compare. If there are more, a build is assumed to have run.
const MAX_COMPARED: usize = 100_000;

/// Sets the modification times of the new content that a command has written to the current time if build output may
/// depend on the old content.
pub(super) fn renew_times(kept: &mut PreviewedCommand) {
    // Files that the command wrote directly are made from the new content.
    let since = |changes: &Changes| if kept.view.direct().is_some() { kept.ended_at } else { changes.start_time() };
    let stale: Vec<bool> =
        kept.changes.iter().map(|changes| writes_files(changes, &kept.build) && is_built(changes, since(changes))).collect();
    for (changes, _) in kept.changes.iter_mut().zip(stale).filter(|(_, is_stale)| *is_stale) {
        let build = nested_directories(changes.directory(), &kept.build);
        if let Err(error) = overlay::set_current_times(changes, &build) {
            tracing::warn!(%error, "cannot set the modification times of applied changes");
        }
    }
}

/// Returns whether the changes write any file that is not build output.
fn writes_files(changes: &Changes, build: &[PathBuf]) -> bool {
    let is_output = |path: &Path| build.iter().any(|directory| path.starts_with(directory));
    let is_file = |change: &&overlay::Change| change.after.is_some_and(|after| after.kind == NodeKind::File);
    changes.entries().iter().filter(is_file).any(|change| !is_output(&changes.old(&change.path)))
}

/// Returns whether a build directory has changed, or may have changed, since this time.
fn is_built(changes: &Changes, since: Time) -> bool {
    let found = find_build_directories(changes.directory());
    let mut left = MAX_COMPARED;
    !found.is_whole
        || found.directories.iter().any(|directory| changed_after(&changes.directory().join(directory), since, &mut left))
}

/// Returns those directories that are below `root`, as paths relative to it.
fn nested_directories(root: &Path, directories: &[PathBuf]) -> Vec<PathBuf> {
    directories.iter().filter_map(|directory| directory.strip_prefix(root).ok().map(Path::to_owned)).collect()
}
