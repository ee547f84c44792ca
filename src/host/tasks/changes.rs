//! Compares a task's changes with the current workspace, to determine which files can be applied and which are in
//! conflict.

use super::description::{CopyKind, TaskDescription, TaskNotes};
use super::directory::TaskDirectory;
use super::worktree;
use crate::host::error::CliError;
use crate::host::version::version;
use crate::protocol::{Problem, SessionId};
use crate::store::{Snapshots, Store};
use crate::sys::overlay::{Change, Changes, Time};
use crate::sys::sandbox::{layer_path, read_layer};
use crate::tools::{CollectedChanges, FileState, PatchFile, PatchHeader, PolicyStamp, is_older};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Number of times that reading the changes of a running task is attempted.
const ATTEMPTS: u32 = 5;

/// Changes made by a task.
pub(crate) struct TaskChanges {
    pub collected: CollectedChanges,
    /// Directory that contains the task's version of each file.
    versions: PathBuf,
}

impl TaskChanges {
    /// Reads the changes. This process must see the real workspace, not a copy.
    ///
    /// # Errors
    /// Returns an error if the copy cannot be read, or if its changes exceed a limit.
    pub(crate) fn read(task: &TaskDirectory, description: &TaskDescription) -> Result<Self, CliError> {
        let mut attempts = 1..ATTEMPTS;
        loop {
            let read = Self::read_once(task, description);
            // The files of a running task change while they are read.
            if read.is_ok() || task.holder().is_none() || attempts.next().is_none() {
                return read;
            }
        }
    }

    fn read_once(task: &TaskDirectory, description: &TaskDescription) -> Result<Self, CliError> {
        let failed = |why: &dyn std::fmt::Display| {
            CliError::failed(Problem::new(format!("cannot read the changes of task `{}`", task.short_id())).because(why))
        };
        let notes = task.notes();
        let (collected, versions) = match &description.copy {
            CopyKind::Layer => {
                let collected = match read_layer(&description.workspace, &task.layer()) {
                    Ok(layer) => {
                        let seen = SeenStates::read(task, &layer, &notes)?;
                        CollectedChanges::read_with(&layer, &|change, state| seen.contains(change, state))
                    }
                    // The task never started.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(CollectedChanges::default()),
                    Err(error) => Err(error.to_string()),
                };
                (collected, layer_path(&task.layer(), Path::new("")))
            }
            CopyKind::Worktree { workspace, base, .. } => {
                let is_seen = |path: &str, state: Option<&FileState>| is_applied(&notes, path, state);
                (worktree::changes(&description.workspace, workspace, base, &is_seen), workspace.clone())
            }
        };
        Ok(Self { collected: collected.map_err(|why| failed(&why))?, versions })
    }

    /// Returns the number of changed files, including those in conflict.
    pub(crate) fn count(&self) -> usize {
        self.collected.files.len() + self.collected.conflicts.len()
    }

    /// Returns the path at which the task's version of a file is stored.
    pub(crate) fn version(&self, path: &str) -> PathBuf {
        self.versions.join(path)
    }

    /// Returns the changes that can be applied as a patch file, or `None` if there are none.
    ///
    /// # Errors
    /// Returns an error if the changes cannot be represented in a patch file.
    pub(crate) fn patch(&self, policy: PolicyStamp) -> Result<Option<PatchFile>, String> {
        if self.collected.files.is_empty() {
            return Ok(None);
        }
        let header = PatchHeader::new(version(), policy, self.collected.files.clone(), Vec::new(), Vec::new());
        let text = PatchFile::text(&header, &self.collected).map_err(|error| error.to_string())?;
        PatchFile::parse(text.as_bytes()).map(Some)
    }

    /// Records the content that `aye task keep` is about to write, so that the task is considered to have seen it.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub(crate) fn note_applied(task: &TaskDirectory, results: &[(String, Option<FileState>)]) -> Result<(), CliError> {
        task.update_notes(|notes| {
            for (path, result) in results {
                notes.applied.entry(path.clone()).or_default().insert(state_key(result.as_ref()));
            }
        })
    }
}

/// Returns whether `aye task keep` has written this content to a path, or was about to do so.
fn is_applied(notes: &TaskNotes, path: &str, state: Option<&FileState>) -> bool {
    notes.applied.get(path).is_some_and(|states| states.contains(&state_key(state)))
}

/// Returns the key that represents a file state in the notes.
fn state_key(state: Option<&FileState>) -> String {
    state.map_or_else(|| "absent".to_owned(), |state| format!("{} {}", state.mode, state.sha256))
}

/// Workspace content that a task has seen.
struct SeenStates<'a> {
    layer: &'a Changes,
    applied: &'a BTreeMap<String, BTreeSet<String>>,
    /// For each absolute path, whether its content is still the same as before the task first changed it.
    baselines: HashMap<PathBuf, bool>,
}

impl<'a> SeenStates<'a> {
    fn read(task: &TaskDirectory, layer: &'a Changes, notes: &'a TaskNotes) -> Result<Self, CliError> {
        let mut open: Vec<PathBuf> = layer.entries().iter().map(|change| layer.old(&change.path)).collect();
        let mut baselines = HashMap::new();
        let snapshots = Snapshots::new(&task.data());
        // The original content of a path is its content before the first change by any session.
        for session in sessions(task)? {
            let known = snapshots.baseline_matches(&session, open.clone());
            let known = known.map_err(|error| CliError::failed(error.message))?;
            open.retain(|path| !known.contains_key(path));
            baselines.extend(known);
        }
        Ok(Self { layer, applied: &notes.applied, baselines })
    }

    fn contains(&self, change: &Change, state: Option<&FileState>) -> bool {
        let is_applied = change.path.to_str().and_then(|path| self.applied.get(path));
        if is_applied.is_some_and(|states| states.contains(&state_key(state))) {
            return true;
        }
        match self.baselines.get(&self.layer.old(&change.path)) {
            Some(is_same) => *is_same,
            // A file that is missing now may have been deleted while the task ran.
            None => is_older(change, self.layer) && (change.before.is_some() || self.is_old_directory(&change.path)),
        }
    }

    /// Returns whether no entry has been created or deleted in the directory of this path since the task began.
    fn is_old_directory(&self, path: &Path) -> bool {
        let old = self.layer.old(path);
        let directory = old.ancestors().skip(1).find_map(|above| above.symlink_metadata().ok());
        directory.is_some_and(|metadata| Time(metadata.ctime(), metadata.ctime_nsec()) <= self.layer.start_time())
    }
}

/// Returns the IDs of a task's sessions, oldest first.
pub(crate) fn sessions(task: &TaskDirectory) -> Result<Vec<SessionId>, CliError> {
    if !task.data().join("aye.db").exists() {
        return Ok(Vec::new());
    }
    let mut all = Store::open(&task.data())?.sessions(None)?;
    all.sort_by_key(|session| session.created);
    Ok(all.into_iter().map(|session| session.session_id).collect())
}
