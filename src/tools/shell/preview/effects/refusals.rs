//! Changes that are never applied under the policy: changes to paths that the command must not write or delete, and to
//! files that would make git run a program.

use crate::sys::overlay::{Change, Changes};
use crate::sys::parallel::{self, CHUNK_ITEMS};
use crate::tools::settings::ToolSettings;
use crate::tools::write::git_guard::{MARKS, TRUSTED};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns the paths whose changes are never applied.
pub(in crate::tools::shell::preview) fn refusals(changes: &Changes, settings: &ToolSettings) -> BTreeSet<PathBuf> {
    let judged = parallel::map(changes.entries().chunks(CHUNK_ITEMS), |entries| {
        let refused = entries.iter().filter(|change| !can_apply_change(change, changes, settings));
        refused.map(|change| change.path.clone()).collect::<Vec<_>>()
    });
    let mut refused: BTreeSet<PathBuf> = judged.into_iter().flatten().collect();
    refused.extend(repository_changes(changes));
    refused
}

fn can_apply_change(change: &Change, changes: &Changes, settings: &ToolSettings) -> bool {
    let real = changes.old(&change.path);
    let (writes, deletes) =
        (change.after.is_some(), change.before.is_some() && change.kind().is_none() || change.after.is_none());
    (!writes || (settings.paths.may_write)(&real)) && (!deletes || (settings.paths.may_delete)(&real))
}

/// Returns the changes to protected files in any directory that is, or becomes, a git repository.
fn repository_changes(changes: &Changes) -> Vec<PathBuf> {
    let mut looked: BTreeMap<PathBuf, Option<PriorState>> = BTreeMap::new();
    let mut refused = Vec::new();
    for change in changes.entries() {
        for (depth, name) in change.path.iter().enumerate() {
            let (trusted, mark) = (is_one_of(name, TRUSTED), is_one_of(name, &MARKS));
            if trusted || mark {
                let directory: PathBuf = change.path.iter().take(depth).collect();
                let was = *looked.entry(directory).or_insert_with_key(|directory| repository(changes, directory));
                if was == Some(PriorState::Made) || (trusted && was == Some(PriorState::There)) {
                    refused.push(change.path.clone());
                    break;
                }
            }
        }
    }
    refused
}

fn is_one_of(name: &OsStr, names: &[&str]) -> bool {
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PriorState {
    There,
    Made,
}

/// Returns the prior state of a directory that git considers a repository after the changes: whether it was one before.
/// Returns `None` if it is not a repository.
fn repository(changes: &Changes, directory: &Path) -> Option<PriorState> {
    let at = |mark: &str| {
        let path = directory.join(mark);
        let before = changes.old(&path).symlink_metadata().is_ok();
        let after = match changes.entries().binary_search_by(|change| change.path.as_path().cmp(&path)) {
            Ok(found) => changes.entries()[found].after.is_some(),
            Err(_) => before,
        };
        (before, after)
    };
    let marks = MARKS.map(at);
    match (marks.iter().all(|(before, _)| *before), marks.iter().all(|(_, after)| *after)) {
        (true, _) => Some(PriorState::There),
        (false, true) => Some(PriorState::Made),
        (false, false) => None,
    }
}
