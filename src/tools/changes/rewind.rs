//! Rewinds files to their state before a step: plans and performs the rewind.
//!
//! The current content is saved first, as before any other change. Each path is written only if it still has the
//! content that was saved. After a crash, repeating the same rewind completes the remaining paths and skips those that
//! have already been restored.

use super::{SessionChanges, ToolSettings};
use crate::ports::{
    Attribution, ChangeHistory, CheckpointError, ContentId, FileRewind, FileRewindPlan, FileRewindResult, MarkedState,
    RewindStart, StoredState, Touch, TouchedDirectory,
};
use crate::protocol::{ChangedBy, FileDiff, RewindChange, RewindFile};
use crate::sys::file::{CurrentState, TargetState, WriteError, create_directory, remove_empty_directory, restore, set_mode};
use crate::tools::change_log::{changed_directories, directories_at};
use crate::tools::diff::{path_diff, prepare_content};
use crate::tools::paths::display_path_one_line;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum file size in bytes for which a diff is shown.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Size limit in bytes for all diffs together.
const MAX_DIFF_BYTES: usize = 2 << 20;

/// The planned change to one path.
struct PathRewind {
    path: PathBuf,
    to: MarkedState,
    now: MarkedState,
    what: PathAction,
}

enum PathAction {
    /// Nothing needs to be done, because the path is already in the target state.
    Nothing,
    PutBack,
    /// Another program has changed the path. Contains a description of the conflict.
    Conflict(String),
    /// The path cannot be restored, for this reason.
    Cannot(String),
}

/// The planned changes to all paths and directories.
struct Moves {
    files: Vec<PathRewind>,
    directories: Vec<TouchedDirectory>,
    cannot: Vec<String>,
}

impl SessionChanges<'_> {
    pub(in crate::tools) async fn plan_rewind(&self, since: RewindStart) -> Result<FileRewindPlan, CheckpointError> {
        let moves = self.moves(since, None).await?;
        let mut planned = FileRewindPlan { cannot: moves.cannot, ..FileRewindPlan::default() };
        let mut room = MAX_DIFF_BYTES;
        for one in moves.files {
            let conflict = match &one.what {
                PathAction::Nothing => continue,
                PathAction::Cannot(why) => {
                    planned.cannot.push(format!("{} is left as is: {why}", display_path_one_line(&one.path, self.settings)));
                    continue;
                }
                PathAction::Conflict(why) => Some(why.clone()),
                PathAction::PutBack => None,
            };
            let (diff, added, removed) = self.diff(&one).await;
            let bytes = diff.text_bytes();
            if conflict.is_none() && bytes <= room {
                room -= bytes;
                planned.diff.push(diff);
            }
            planned.files.push(RewindFile { added, removed, conflict, ..one.to_rewind_file(self.settings) });
        }
        Ok(planned)
    }

    pub(in crate::tools) async fn rewind(&self, rewind: &FileRewind) -> Result<FileRewindResult, CheckpointError> {
        let Moves { mut files, directories, .. } = self.moves(rewind.since, Some(rewind.number)).await?;
        // Delete newly created files first, so that they do not occupy restored paths.
        files.sort_by(|one, other| {
            let goes = |one: &PathRewind| one.to.stood == StoredState::Missing;
            goes(other).cmp(&goes(one)).then_with(|| one.path.cmp(&other.path))
        });
        let task = FileRewind::task_id(rewind.number);
        let owner = Attribution { session: self.log.session().clone(), task: Some(task), step: rewind.step };
        let mut done = FileRewindResult::default();
        let mut chosen = Vec::new();
        let mut back_already = Vec::new();
        for one in files {
            match &one.what {
                PathAction::Nothing => back_already.push(one),
                PathAction::PutBack => chosen.push(one),
                PathAction::Conflict(_) if overwrites(&rewind.overwrite, &one.path, self.settings) => chosen.push(one),
                PathAction::Conflict(why) => done.kept.push(one.to_kept_file(why, self.settings)),
                PathAction::Cannot(why) => done.kept.push(one.to_kept_file(why, self.settings)),
            }
        }
        let paths: Vec<_> = chosen.iter().map(|one| one.path.clone()).collect();
        let to_keep = paths.clone();
        let before = tokio::task::spawn_blocking(move || directories_at(&to_keep)).await.unwrap_or_default();
        self.log.baselines().keep(owner.clone(), paths.clone()).await?;
        let mut kept = self.saved_states(&owner).await?;
        // Count the paths that were restored before a crash.
        done.restored +=
            back_already.iter().filter(|one| kept.get(&one.path).is_some_and(|kept| kept.mark != one.now.mark)).count() as u64;
        let gone_first = chosen.iter().position(|one| one.to.stood != StoredState::Missing).unwrap_or(chosen.len());
        let rest = chosen.split_off(gone_first);
        for one in chosen {
            self.restore_path(one, &kept, &mut done).await;
        }
        let noted = off_thread(move || change_directories(&directories)).await?;
        // Save the paths again, because a path that was a directory could not be saved before.
        self.log.baselines().keep(owner.clone(), rest.iter().map(|one| one.path.clone()).collect()).await?;
        kept.extend(self.saved_states(&owner).await?);
        for one in rest {
            self.restore_path(one, &kept, &mut done).await;
        }
        self.log.record_write(&paths);
        let looked = paths.clone();
        let now = tokio::task::spawn_blocking(move || directories_at(&looked)).await.unwrap_or_default();
        let noted: Vec<_> = changed_directories(&before, &now).into_iter().chain(noted).collect();
        if !noted.is_empty() {
            self.log.baselines().note_directories(owner.clone(), noted).await?;
        }
        let settled: Vec<_> = paths.into_iter().chain(back_already.into_iter().map(|one| one.path)).collect();
        self.log.baselines().record_tool_change(owner, settled).await?;
        Ok(done)
    }

    /// Returns the states that were saved for this rewind, by path.
    async fn saved_states(&self, owner: &Attribution) -> Result<BTreeMap<PathBuf, MarkedState>, CheckpointError> {
        let trail = self.log.baselines().trail(self.log.session().clone(), owner.step).await?;
        let own = trail.files.into_iter().filter(|touch| touch.task == owner.task);
        Ok(own.map(|touch| (touch.path, touch.before)).collect())
    }

    /// Restores one path if it still has the content that was saved.
    async fn restore_path(&self, one: PathRewind, kept: &BTreeMap<PathBuf, MarkedState>, done: &mut FileRewindResult) {
        match self.try_restore(&one, kept).await {
            Ok(()) => done.restored += 1,
            Err(why) => done.kept.push(one.to_kept_file(&why, self.settings)),
        }
    }

    async fn try_restore(&self, one: &PathRewind, kept: &BTreeMap<PathBuf, MarkedState>) -> Result<(), String> {
        let nothing = MarkedState { stood: StoredState::Missing, mark: Vec::new(), why: None };
        let before = kept.get(&one.path).unwrap_or(&nothing);
        let found = match &before.stood {
            StoredState::Missing => CurrentState::Nothing,
            StoredState::File { content, mode, .. } => {
                CurrentState::File { hash: blake3::Hash::from_bytes(content.0), mode: *mode }
            }
            StoredState::Link { to } => CurrentState::Link { to: to.clone() },
            StoredState::Unkept => {
                let why = before.why.clone().unwrap_or_else(|| "unknown reason".to_owned());
                return Err(format!("the current content could not be saved: {why}"));
            }
        };
        let now = self.log.baselines().current_states(vec![one.path.clone()]).await.map_err(|error| error.message)?;
        if now.first().is_some_and(|now| now.stood != before.stood) {
            return Err(CHANGED.to_owned());
        }
        let (path, to) = (one.path.clone(), one.to.stood.clone());
        let content = match &to {
            StoredState::File { content, .. } => Some(self.content(*content).await?),
            StoredState::Missing | StoredState::Link { .. } | StoredState::Unkept => None,
        };
        let put = off_thread(move || {
            let wanted = match (&to, &content) {
                (StoredState::File { mode, .. }, Some(content)) => TargetState::File { content, mode: *mode },
                (StoredState::Link { to }, _) => TargetState::Link { to },
                _ => TargetState::Nothing,
            };
            restore(&path, &found, wanted)
        });
        put.await.map_err(|error| error.message)?.map_err(|error| match error {
            WriteError::Changed => CHANGED.to_owned(),
            error => format!("cannot write the file: {error}"),
        })
    }

    async fn content(&self, id: ContentId) -> Result<Vec<u8>, String> {
        self.log.checkpoints().content(id).await.map_err(|error| {
            tracing::warn!(%error, "cannot read a baseline");
            "the earlier content is no longer stored".to_owned()
        })
    }

    /// Plans the changes to all paths and directories. Ignores the changes made by the rewind `own`.
    async fn moves(&self, since: RewindStart, own: Option<u32>) -> Result<Moves, CheckpointError> {
        let mut cannot = Vec::new();
        if let Err(error) = self.record_running_commands().await {
            cannot.push(format!("a command's latest changes are unknown: {error}"));
        }
        let step = if let RewindStart::Step(step) = since { step } else { 0 };
        let ChangeHistory { files, directories, gaps, left_out } =
            self.log.baselines().trail(self.log.session().clone(), step).await?;
        let counts = |task: &Option<crate::protocol::TaskId>| {
            let number = task.as_ref().and_then(FileRewind::rewind_number);
            let later = match since {
                RewindStart::Step(_) => true,
                RewindStart::Rewind(first) => number.is_some_and(|number| number >= first),
            };
            later && (number.is_none() || number != own)
        };
        if let RewindStart::Step(_) = since {
            cannot.extend(gaps);
            if left_out > 0 {
                cannot.push(format!("{left_out} more changed paths exceed the session limit"));
            }
        }
        let mut by_path: BTreeMap<PathBuf, Vec<Touch>> = BTreeMap::new();
        // Skip paths that a tool examined but did not change. Their next change starts from the content at that time.
        for touch in files.into_iter().filter(|touch| counts(&touch.task) && !touch.by.is_empty()) {
            by_path.entry(touch.path.clone()).or_default().push(touch);
        }
        let paths: Vec<_> = by_path.keys().cloned().collect();
        let states = self.log.baselines().current_states(paths).await?;
        let files = by_path.into_iter().zip(states).map(|((path, touches), now)| plan_move(path, &touches, now));
        let mut seen = BTreeSet::new();
        let directories = directories.into_iter().filter(|one| counts(&one.task) && seen.insert(one.path.clone()));
        Ok(Moves { directories: directories.collect(), files: files.collect(), cannot })
    }

    /// Returns the diff from the current to the restored content, with the numbers of added and removed lines. It
    /// contains lines only if both are text within the size limit.
    async fn diff(&self, one: &PathRewind) -> (FileDiff, u64, u64) {
        let name = self.settings.redactor.redact(&display_path_one_line(&one.path, self.settings)).text.into_owned();
        let kept = match &one.to.stood {
            StoredState::File { content, bytes, .. } if *bytes <= MAX_FILE_BYTES => self.content(*content).await.ok(),
            other => describe_non_file(other),
        };
        let (settings, path, now, to) =
            (Arc::clone(self.settings), one.path.clone(), one.now.stood.clone(), one.to.stood.clone());
        let made = off_thread(move || {
            let there = match &now {
                StoredState::File { bytes, .. } if *bytes <= MAX_FILE_BYTES && (settings.paths.may_read)(&path) => {
                    crate::sys::file::read(&path, MAX_FILE_BYTES).ok()
                }
                other => describe_non_file(other),
            };
            let text = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| prepare_content(&bytes, &settings));
            let (Some(old), Some(new)) = (text(there), text(kept)) else { return Default::default() };
            let (diff, added, removed) = path_diff(&name, (&now, &old), (&to, &new));
            (diff, added as u64, removed as u64)
        });
        made.await.unwrap_or_default()
    }
}

const CHANGED: &str = "the file was changed during the rewind";
const BY_HAND: &str = "the file was edited outside aye since then";
const IN_BETWEEN: &str = "the file was edited outside aye between two changes of this session, and rewinding would lose that \
edit";
const UNFINISHED: &str = "aye exited while the file was being changed, so its current content may be yours";

/// Plans how to rewind a path, given the changes made to it, oldest first.
fn plan_move(path: PathBuf, touches: &[Touch], now: MarkedState) -> PathRewind {
    let nothing = MarkedState { stood: StoredState::Missing, mark: Vec::new(), why: None };
    let to = touches.first().map_or(nothing, |touch| touch.before.clone());
    let what = decide(&path, touches, &now, &to);
    PathRewind { path, to, now, what }
}

/// Decides what to do with a path. The policy is not consulted, because it restricts the agent, whereas a rewind is
/// performed by the user.
fn decide(path: &Path, touches: &[Touch], now: &MarkedState, to: &MarkedState) -> PathAction {
    let ours = |touch: &Touch| touch.by.iter().any(|by| matches!(by, ChangedBy::Tool | ChangedBy::Command));
    if now.mark == to.mark || !touches.iter().any(ours) {
        return PathAction::Nothing;
    }
    if path.components().any(|name| name.as_os_str() == ".git") {
        return PathAction::Cannot("the file is inside `.git`; use git commands to undo the change".to_owned());
    }
    for (side, when) in [(to, "the earlier content"), (now, "the current content")] {
        if side.stood == StoredState::Unkept {
            let why = side.why.as_deref().unwrap_or("unknown reason");
            return PathAction::Cannot(format!("{when} was not saved ({why})"));
        }
    }
    if touches.iter().any(|touch| touch.mixed) {
        return PathAction::Conflict(IN_BETWEEN.to_owned());
    }
    let mut before: Option<&Touch> = None;
    for touch in touches {
        if let Some(earlier) = before
            && earlier.after.as_ref().unwrap_or(&earlier.before.mark) != &touch.before.mark
        {
            return PathAction::Conflict(if earlier.after.is_some() { IN_BETWEEN } else { UNFINISHED }.to_owned());
        }
        before = Some(touch);
    }
    match before.map(|last| (&last.after, &last.before.mark)) {
        Some((Some(after), _)) if *after == now.mark => PathAction::PutBack,
        Some((Some(_), _)) | None => PathAction::Conflict(BY_HAND.to_owned()),
        Some((None, mark)) if *mark == now.mark => PathAction::PutBack,
        Some((None, _)) => PathAction::Conflict(UNFINISHED.to_owned()),
    }
}

/// Removes created directories if they are empty, and recreates removed ones. Returns the changes that it made.
fn change_directories(touched: &[TouchedDirectory]) -> Vec<TouchedDirectory> {
    let mut done = Vec::new();
    let mut made: Vec<_> = touched.iter().filter(|one| one.made).collect();
    made.sort_by(|one, other| other.path.cmp(&one.path));
    for one in made {
        if remove_empty_directory(&one.path).unwrap_or(false) {
            done.push(TouchedDirectory { made: false, ..one.clone() });
        }
    }
    let mut gone: Vec<_> = touched.iter().filter(|one| !one.made).collect();
    gone.sort_by(|one, other| one.path.cmp(&other.path));
    for one in gone {
        if create_directory(&one.path).unwrap_or(false) {
            let _ = set_mode(&one.path, one.mode);
            done.push(TouchedDirectory { made: true, ..one.clone() });
        }
    }
    done
}

/// Returns whether the user chose to overwrite this path. `paths` contains the chosen paths in the form in which they
/// were shown.
fn overwrites(paths: &[PathBuf], path: &Path, settings: &ToolSettings) -> bool {
    paths.iter().any(|given| given == path || settings.workspace.join(given) == path)
}

impl PathRewind {
    fn to_rewind_file(&self, settings: &ToolSettings) -> RewindFile {
        let change = match (&self.to.stood, &self.now.stood) {
            (StoredState::Missing, _) => RewindChange::Deleted,
            (_, StoredState::Missing) => RewindChange::BroughtBack,
            _ => RewindChange::Restored,
        };
        let path = self.path.strip_prefix(&settings.workspace).unwrap_or(&self.path).to_owned();
        RewindFile { path, change, added: 0, removed: 0, conflict: None, kept: false }
    }

    fn to_kept_file(&self, why: &str, settings: &ToolSettings) -> RewindFile {
        RewindFile { conflict: Some(why.to_owned()), kept: true, ..self.to_rewind_file(settings) }
    }
}

/// Returns the text to use for an entry, other than a regular file, in a comparison. Returns `None` if there is no such
/// text.
fn describe_non_file(stood: &StoredState) -> Option<Vec<u8>> {
    match stood {
        StoredState::Missing => Some(Vec::new()),
        StoredState::Link { to } => Some(to.display().to_string().into_bytes()),
        StoredState::File { .. } | StoredState::Unkept => None,
    }
}

/// Runs blocking work on a separate thread, so it does not delay other work.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, CheckpointError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CheckpointError { message: format!("the rewind ended early: {error}") })
}
