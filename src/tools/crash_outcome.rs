//! Determines the outcome of calls that were running when aye exited, by comparing the files on disk with the calls'
//! plans.

use crate::ports::RecoveredState;
use crate::protocol::{PathState, PlaceChange};
use crate::sys::file::PreImage;
use crate::sys::file::append::scan;
use crate::sys::file::tree::{Survey, survey};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Prefix of the names that aye gives to temporary files.
const UNFINISHED: &str = ".aye-";
/// Maximum number of paths to list for each kind.
const MAX_NAMED: usize = 10;

pub(in crate::tools) fn content(image: &PreImage) -> PathState {
    match image {
        PreImage::Absent => PathState::Nothing,
        PreImage::Content(hash) => PathState::Content { hash: hash.to_hex().to_string() },
    }
}

pub(in crate::tools) fn entry(survey: &Survey) -> PathState {
    let Survey { files, directories, links, bytes, .. } = *survey;
    PathState::Entry { files, directories, links, bytes }
}

/// Returns the planned change for a file that is created or receives new content.
pub(in crate::tools) fn planned_write(path: &Path, before: &PreImage, after: &PreImage) -> PlaceChange {
    PlaceChange { path: path.to_owned(), before: content(before), after: Some(content(after)) }
}

/// State of a path on disk compared with the states before and after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskState {
    Old,
    New,
    /// The call was not going to change the path.
    Same,
    Other,
}

/// Determines a call's outcome from the files on disk. Returns `None` if the call would not have changed any path.
pub(crate) fn assess_outcome(changes: &[PlaceChange]) -> Option<RecoveredState> {
    let looked: Vec<(DiskState, &Path)> = changes.iter().map(|change| (now(change), change.path.as_path())).collect();
    if looked.is_empty() {
        return None;
    }
    let has = |wanted: DiskState| looked.iter().any(|(now, _)| *now == wanted);
    Some(match (has(DiskState::Old), has(DiskState::New), has(DiskState::Other)) {
        (false, _, false) => RecoveredState::Done { left: leftover_files(changes) },
        (true, false, false) => RecoveredState::NotDone { left: leftover_files(changes) },
        _ => RecoveredState::Partly { words: describe_states(&looked, &leftover_files(changes)) },
    })
}

fn now(change: &PlaceChange) -> DiskState {
    let is_old = is_in_state(&change.path, &change.before);
    if change.after.as_ref() == Some(&change.before) {
        return if is_old { DiskState::Same } else { DiskState::Other };
    }
    if is_old {
        DiskState::Old
    } else if change.after.as_ref().is_some_and(|after| is_in_state(&change.path, after)) {
        DiskState::New
    } else {
        DiskState::Other
    }
}

/// Returns whether the path is in this state. If the path cannot be read, it is in no state.
pub(in crate::tools) fn is_in_state(path: &Path, what: &PathState) -> bool {
    let form = path.symlink_metadata();
    match what {
        PathState::Nothing => {
            form.is_err_and(|error| matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory))
        }
        PathState::Directory => form.is_ok_and(|form| form.is_dir()),
        PathState::Content { .. } => {
            form.is_ok_and(|form| form.is_file()) && scan(path, &mut |_| {}).is_ok_and(|image| content(&image) == *what)
        }
        PathState::Entry { .. } => form.is_ok() && survey(path, &mut |_, _| {}).is_ok_and(|survey| entry(&survey) == *what),
        PathState::Unreadable => false,
    }
}

/// Returns any temporary files that aye left next to these paths.
fn leftover_files(changes: &[PlaceChange]) -> Vec<PathBuf> {
    let above: BTreeSet<&Path> = changes.iter().filter_map(|change| change.path.parent()).collect();
    let entries = above.into_iter().filter_map(|directory| directory.read_dir().ok()).flatten().flatten();
    let mut left: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED)).map(|entry| entry.path()).collect();
    left.sort();
    left
}

/// Describes the states of the paths, for example as ``changed by the call: `a`; not changed: `b` ``.
fn describe_states(looked: &[(DiskState, &Path)], left: &[PathBuf]) -> String {
    let of = |wanted: &[DiskState]| -> Vec<&Path> {
        looked.iter().filter(|(now, _)| wanted.contains(now)).map(|(_, path)| *path).collect()
    };
    let kinds = [
        ("changed by the call", of(&[DiskState::New])),
        ("not changed", of(&[DiskState::Old, DiskState::Same])),
        ("with neither the old nor the new content", of(&[DiskState::Other])),
    ];
    let told =
        kinds.iter().filter(|(_, paths)| !paths.is_empty()).map(|(words, paths)| format!("{words}: {}", list_paths(paths)));
    let left: Vec<&Path> = left.iter().filter_map(|path| path.file_name()).map(Path::new).collect();
    let left = (!left.is_empty()).then(|| format!("leftover temporary files: {}", list_paths(&left)));
    told.chain(left).collect::<Vec<_>>().join("; ")
}

fn list_paths(paths: &[&Path]) -> String {
    let mut names: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| format!("`{}`", path.display())).collect();
    let more = paths.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn image(content: &str) -> PreImage {
        PreImage::hash(content.as_bytes())
    }

    #[test]
    fn a_call_is_done_not_done_or_partly_done_depending_on_file_contents() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        let edit = |name: &str| planned_write(&path(name), &image("old"), &image("new"));
        let make = |name: &str| planned_write(&path(name), &PreImage::Absent, &image("new"));
        let changes = [edit("a"), edit("b"), make("c")];
        let put = |a: &str, b: &str, c: Option<&str>| {
            fs::write(path("a"), a).unwrap();
            fs::write(path("b"), b).unwrap();
            drop(fs::remove_file(path("c")));
            if let Some(c) = c {
                fs::write(path("c"), c).unwrap();
            }
            assess_outcome(&changes).unwrap()
        };
        assert_eq!(put("new", "new", Some("new")), RecoveredState::Done { left: Vec::new() });
        assert_eq!(put("old", "old", None), RecoveredState::NotDone { left: Vec::new() });
        fs::write(path(".aye-1"), "old").unwrap();
        let RecoveredState::Partly { words } = put("new", "by hand", None) else { panic!("it is in part") };
        let [new, old, other] = ["a", "c", "b"].map(|name| path(name).display().to_string());
        assert_eq!(
            words,
            format!(
                "changed by the call: `{new}`; not changed: `{old}`; with neither the old nor the new content: `{other}`; \
                 leftover temporary files: `.aye-1`"
            )
        );
        assert_eq!(put("new", "new", Some("new")), RecoveredState::Done { left: vec![path(".aye-1")] });
        assert_eq!(assess_outcome(&[]), None);
    }

    #[test]
    fn outcomes_of_moves_copies_and_deletions_are_determined_from_the_trees() {
        let directory = tempfile::TempDir::new().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("file"), "text").unwrap();
        let tree = entry(&survey(&from, &mut |_, _| {}).unwrap());
        let moved = [
            PlaceChange { path: from.clone(), before: tree.clone(), after: Some(PathState::Nothing) },
            PlaceChange { path: to.clone(), before: PathState::Nothing, after: Some(tree) },
        ];
        assert_eq!(assess_outcome(&moved), Some(RecoveredState::NotDone { left: Vec::new() }));
        fs::rename(&from, &to).unwrap();
        assert_eq!(assess_outcome(&moved), Some(RecoveredState::Done { left: Vec::new() }));
        fs::create_dir(&from).unwrap();
        assert!(matches!(assess_outcome(&moved), Some(RecoveredState::Partly { .. })));
        let unknown = PlaceChange { path: to.join("file"), before: content(&image("text")), after: None };
        assert_eq!(assess_outcome(std::slice::from_ref(&unknown)), Some(RecoveredState::NotDone { left: Vec::new() }));
        fs::write(to.join("file"), "other").unwrap();
        assert!(matches!(assess_outcome(&[unknown]), Some(RecoveredState::Partly { .. })));
    }

    #[test]
    fn a_call_without_changes_is_done_and_a_link_does_not_count_as_the_file() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "same").unwrap();
        let same = [planned_write(&path, &image("same"), &image("same"))];
        assert_eq!(assess_outcome(&same), Some(RecoveredState::Done { left: Vec::new() }));
        let away = directory.path().join("b");
        fs::rename(&path, &away).unwrap();
        std::os::unix::fs::symlink(&away, &path).unwrap();
        assert!(matches!(assess_outcome(&same), Some(RecoveredState::Partly { .. })));
    }
}
