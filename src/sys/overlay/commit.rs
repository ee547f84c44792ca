//! Commits changes to the real directories: they are checked, staged, recorded in a journal, and then applied.

use super::apply::CommitHooks;
use super::content::ContentDigest;
use super::journal::{self, CommitJournal, JournalRoot, VERSION};
use super::node::{Node, NodeKind};
use super::outcome::{CommitOutcome, is_full};
use super::plan::steps;
use super::progress::{ProgressCounter, ProgressHook, Stage};
use super::recovery;
use super::staging::{is_same_mount, make, stage};
use super::{Change, Changes, VisitedDirectory};
use crate::sys::file::tree::names;
use crate::sys::path::{open_below, open_directory, pass_below};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::fstat;
use nix::unistd::{AccessFlags, faccessat};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommitError {
    /// Paths that changed after the command saw them.
    #[error("{} changed in the meantime", join_paths(.0))]
    Conflict(Vec<PathBuf>),
    #[error("`{}`: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl CommitError {
    /// Returns whether the disk was full.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Io { error, .. } if is_full(error))
    }
}

fn join_paths(paths: &[PathBuf]) -> String {
    let named: Vec<_> = paths.iter().take(5).map(|path| format!("`{}`", path.display())).collect();
    let more = paths.len().saturating_sub(named.len());
    if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
}

/// Applies all changes of the command's view to the real directories, if the affected paths are unchanged since then.
///
/// `preview`: the directory of the view. The plan is written to it before it is carried out, so that
/// [`recover`](super::recover) can finish it after a crash. `progress` is called for each file that is prepared, and
/// again for each file that is applied.
pub(crate) fn commit(preview: &Path, all: &[Changes], progress: ProgressHook<'_>) -> Result<CommitOutcome, CommitError> {
    commit_with_hooks(preview, all, CommitHooks { pace: &mut || Ok(()), progress })
}

pub(super) fn commit_with_hooks(
    preview: &Path,
    all: &[Changes],
    mut hooks: CommitHooks<'_>,
) -> Result<CommitOutcome, CommitError> {
    let here = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| CommitError::Io { path, error }
    };
    let _held = journal::lock_directory(preview).map_err(here(preview))?;
    let base = open_directory(preview).map_err(here(preview))?;
    let mut opened = Vec::new();
    let mut conflicts = Vec::new();
    for changes in all.iter().filter(|changes| !changes.is_empty()) {
        let mut changes = changes.clone();
        let directory = changes.directory().to_owned();
        let root = open_directory(&directory).map_err(here(&directory))?;
        let found = self::conflicts(&mut changes, &root).map_err(here(&directory))?;
        conflicts.extend(found.into_iter().map(|path| directory.join(path)));
        opened.push((changes, root));
    }
    if !conflicts.is_empty() {
        return Err(CommitError::Conflict(conflicts));
    }
    let mut roots = Vec::new();
    for (number, (changes, root)) in opened.iter().enumerate() {
        refuse_unwritable(changes, root)?;
        let one_mount = is_same_mount(&base, root);
        let (parent, name) = if one_mount {
            (preview, OsString::from(format!("stage-{number}")))
        } else {
            (changes.directory(), OsString::from(format!(".aye-{}", uuid::Uuid::new_v4().simple())))
        };
        let may_write = |path: &Path| {
            pass_below(root, path)
                .is_ok_and(|parent| faccessat(&parent, ".", AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS).is_ok())
        };
        roots.push(JournalRoot {
            directory: changes.directory().to_owned(),
            inode: changes.root.inode,
            upper: changes.layered.upper.clone(),
            stage: parent.join(name),
            in_directory: !one_mount,
            steps: steps(changes, &may_write),
        });
    }
    let mut journal = CommitJournal { version: VERSION, roots };
    let ready = make_ready(&base, &opened, &mut journal, &mut hooks);
    if let Err(error) = ready {
        // A plan that may not be durable still counts as started. Its data is preserved until the commit is finished.
        if !journal::has_begun(preview) {
            journal::clear_stages(&journal);
            journal::forget(&base);
        }
        return Err(error);
    }
    recovery::run_steps(&base, &journal, &mut hooks).map_err(here(preview))
}

fn make_ready(
    base: &OwnedFd,
    opened: &[(Changes, OwnedFd)],
    journal: &mut CommitJournal,
    hooks: &mut CommitHooks<'_>,
) -> Result<(), CommitError> {
    let here = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| CommitError::Io { path, error }
    };
    // Staging directories inside the view are removed with the view.
    if journal.roots.iter().any(|root| root.in_directory) {
        journal::note_stages(base, journal).map_err(here(Path::new(journal::STAGES)))?;
    }
    let files = journal.steps().filter(|step| step.is_placement()).count();
    let mut counter = ProgressCounter::new(hooks.progress, Stage::Preparing, files);
    for ((changes, root), planned) in opened.iter().zip(&mut journal.roots) {
        (hooks.pace)().map_err(here(&planned.stage))?;
        let name = planned.stage.file_name().unwrap_or_default();
        let stage_directory = make(if planned.in_directory { root } else { base }, name).map_err(here(&planned.stage))?;
        let upper = open_directory(&planned.upper).map_err(here(&planned.upper))?;
        let staged = stage(changes, &upper, &stage_directory, &mut planned.steps, planned.in_directory, &mut counter);
        staged.map_err(here(&planned.directory))?;
    }
    // Paths may have changed during the preparation.
    let mut late = Vec::new();
    for (changes, root) in opened {
        let found = ConflictCheck { changes, is_first: false }.conflicts(root).map_err(here(changes.directory()))?.0;
        late.extend(found.into_iter().map(|path| changes.directory().join(path)));
    }
    if !late.is_empty() {
        return Err(CommitError::Conflict(late));
    }
    (hooks.pace)().map_err(here(Path::new(journal::BEGUN)))?;
    journal::begin(base, journal).map_err(here(Path::new(journal::BEGUN)))
}

/// Returns the paths of a commit that conflict with later changes. For files that were only touched, records the
/// current state as the one that later checks compare against.
fn conflicts(changes: &mut Changes, root: &OwnedFd) -> io::Result<Vec<PathBuf>> {
    let (found, touched) = ConflictCheck { changes, is_first: true }.conflicts(root)?;
    for (at, now) in touched {
        changes.entries[at].before = Some(now);
    }
    Ok(found)
}

/// Compares a real directory with the state that the command saw.
struct ConflictCheck<'a> {
    changes: &'a Changes,
    /// Whether touched files are compared by content. Once the steps have been planned, any touched file is a conflict.
    is_first: bool,
}

/// Index of an entry that was only touched, with its current state.
type TouchedEntry = (usize, Node);

/// How a path's current state compares with the state that the command saw.
enum PathComparison {
    Same,
    /// The content is the same, but the times or the inode differ.
    Touched(Node),
    Changed,
}

impl ConflictCheck<'_> {
    /// Returns the paths that have changed, along with the entries that were only touched and their current states.
    fn conflicts(&self, root: &OwnedFd) -> io::Result<(Vec<PathBuf>, Vec<TouchedEntry>)> {
        let (changes, mut touched) = (self.changes, Vec::new());
        let now = Node::from_stat(&fstat(root)?);
        // The path now leads to a different directory.
        if !changes.root.is_still(&now) {
            return Ok((vec![PathBuf::new()], touched));
        }
        let mut found = Vec::new();
        let passed: BTreeMap<&Path, &VisitedDirectory> =
            changes.passed.iter().map(|passed| (passed.path.as_path(), passed)).collect();
        let mut parents: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for (at, change) in changes.entries.iter().enumerate() {
            let directory = change.path.parent().unwrap_or(Path::new(""));
            let parent = match pass_below(root, directory) {
                Ok(parent) => Some(parent),
                // This commit creates the parent, or removes the entry together with its parent.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => None,
                Err(errno) => return Err(errno.into()),
            };
            if let Some(passed) = passed.get(directory) {
                let fresh = !parents.contains_key(directory);
                let good = *parents.entry(directory.to_owned()).or_insert_with(|| {
                    let now = parent.as_ref().and_then(|parent| fstat(parent).ok()).map(|stat| Node::from_stat(&stat));
                    !passed.replaced
                        && now.is_some_and(|now| {
                            passed.node.is_still(&now) && !(passed.emptied && self.changed_during_run(&passed.node))
                        })
                });
                if !good {
                    if fresh {
                        found.push(directory.to_owned());
                    }
                    continue;
                }
            }
            match self.state(change, parent.as_ref())? {
                PathComparison::Same => {}
                PathComparison::Touched(now) => touched.push((at, now)),
                PathComparison::Changed => found.push(change.path.clone()),
            }
            if let Some(leader) = &change.link_of
                && !is_file_below(root, leader, changes)
            {
                found.push(leader.clone());
            }
        }
        found.dedup();
        Ok((found, touched))
    }

    /// Returns whether a path changed while the command was running, in which case it is unknown which state the
    /// command saw.
    fn changed_during_run(&self, node: &Node) -> bool {
        self.is_first && node.changed > self.changes.began && node.changed <= self.changes.surveyed
    }

    fn state(&self, change: &Change, parent: Option<&OwnedFd>) -> io::Result<PathComparison> {
        let name = change.path.file_name().unwrap_or_default();
        let now = match parent {
            Some(parent) => Node::at(parent, name)?,
            None => None,
        };
        let (before, now, parent) = match (change.before, now, parent) {
            (None, None, _) => return Ok(PathComparison::Same),
            (Some(before), Some(now), Some(parent)) => (before, now, parent),
            _ => return Ok(PathComparison::Changed),
        };
        // For a directory that remains, only the directory itself is compared. For a directory that is removed, entries
        // that were added to it also count.
        let goes = before.kind != NodeKind::Directory || change.clears();
        if goes && self.changed_during_run(&before) {
            return Ok(PathComparison::Changed);
        }
        let same_moment = before.kind != NodeKind::Directory || !goes || before.changed == now.changed;
        if before.is_still(&now) && same_moment {
            return Ok(PathComparison::Same);
        }
        let is_same = self.is_first
            && goes
            && (before.kind, before.mode, before.owners()) == (now.kind, now.mode, now.owners())
            && match before.kind {
                NodeKind::Directory => self.has_known_names(change, parent, name)?,
                NodeKind::File | NodeKind::Link => {
                    change.content.is_some()
                        && before.bytes == now.bytes
                        && change.content == ContentDigest::read(parent, name, &now)?
                }
                NodeKind::Special => false,
            };
        Ok(if is_same { PathComparison::Touched(now) } else { PathComparison::Changed })
    }

    /// Returns whether the command saw every entry that is now in a directory to be removed.
    fn has_known_names(&self, change: &Change, parent: &OwnedFd, name: &OsStr) -> io::Result<bool> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let directory = match open_below(parent, Path::new(name), flags) {
            Ok(directory) => directory,
            Err(Errno::EACCES) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        };
        let entries = &self.changes.entries;
        let known = |name: &OsString| {
            let path = change.path.join(name);
            entries.binary_search_by(|change| change.path.cmp(&path)).is_ok_and(|at| entries[at].before.is_some())
        };
        Ok(names(&directory)?.iter().all(known))
    }
}

/// Returns whether the target of a hard link is an existing file or an entry that the commit changes or creates.
fn is_file_below(root: &OwnedFd, path: &Path, changes: &Changes) -> bool {
    if changes.entries.binary_search_by(|change| change.path.as_path().cmp(path)).is_ok() {
        return true;
    }
    let (Ok(parent), Some(name)) = (pass_below(root, path.parent().unwrap_or(Path::new(""))), path.file_name()) else {
        return false;
    };
    Node::at(&parent, name).is_ok_and(|node| node.is_some_and(|node| node.kind == NodeKind::File))
}

/// Rejects a commit that would fail halfway through because the user lacks write permission for a directory.
fn refuse_unwritable(changes: &Changes, root: &OwnedFd) -> Result<(), CommitError> {
    let me = nix::unistd::Uid::effective();
    let touched = changes.entries.iter().filter(|change| !change.same_content).filter_map(|change| change.path.parent());
    let mut last: Option<&Path> = None;
    for directory in touched {
        if last.replace(directory) == Some(directory) {
            continue;
        }
        let Ok(opened) = pass_below(root, directory) else { continue };
        let Ok(stat) = fstat(&opened) else { continue };
        let writable = faccessat(&opened, ".", AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS);
        match writable {
            Err(errno) if stat.st_uid != me.as_raw() || errno == Errno::EROFS => {
                return Err(CommitError::Io { path: changes.directory().join(directory), error: errno.into() });
            }
            _ => {}
        }
    }
    Ok(())
}
