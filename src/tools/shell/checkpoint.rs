//! Takes snapshots of the workspace before commands that can change it, and determines the differences afterwards.

use crate::ports::{Checkpoint, CheckpointError, Checkpoints, PathDifference, StoredState};
use crate::protocol::{FileDiffs, Proposal, format_count};
use crate::tools::change_log::{ChangeLog, CommandSpan, Directories, WriteMark};
use crate::tools::changes::SessionChanges;
use crate::tools::changes::workspace_files::entries;
use crate::tools::diff::{path_diff, prepare_content};
use crate::tools::executable_files::mark_files;
use crate::tools::settings::ToolSettings;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// File size in bytes above which no diff is shown.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Size limit in bytes for all diffs together.
const MAX_DIFF_BYTES: usize = 512 * 1024;
/// Number of entries above which changes are not searched for, because that would take longer than most commands do.
const MAX_RESCANNED: usize = 20_000;

/// Note on changes that cannot be attributed to a single command because several were running.
const SHARED: &str = "another command ran at the same time; some of these changes may come from it";

/// State of the workspace before a command ran.
pub(in crate::tools) struct WorkspaceState {
    checkpoints: Arc<dyn Checkpoints>,
    taken: Vec<Checkpoint>,
    /// For each snapshot, the command's span in the session's list of changes.
    watched: Vec<Option<CommandSpan>>,
    /// Directories below each root, with their modes.
    directories: Vec<Directories>,
    files: usize,
    /// Marks the start of the command. From then on, writes made by aye's tools and by other commands are recorded.
    mark: Option<WriteMark>,
}

/// Takes a snapshot of the workspace, except for ignored files. Returns `Ok(None)` if there is no snapshot store or the
/// sandbox is read-only. What the command line is makes no difference.
pub(in crate::tools) async fn snapshot_before(
    settings: &Arc<ToolSettings>,
    kill: &CancellationToken,
) -> Result<Option<WorkspaceState>, CheckpointError> {
    snapshot_all(settings, kill, |changes| changes.mark_command(settings.session.commands.has_writing())).await
}

/// Takes a snapshot before aye itself changes files.
pub(in crate::tools) async fn snapshot_before_tool(
    settings: &Arc<ToolSettings>,
    kill: &CancellationToken,
) -> Result<Option<WorkspaceState>, CheckpointError> {
    snapshot_all(settings, kill, ChangeLog::mark).await
}

async fn snapshot_all(
    settings: &Arc<ToolSettings>,
    kill: &CancellationToken,
    mark: impl Fn(&ChangeLog) -> WriteMark,
) -> Result<Option<WorkspaceState>, CheckpointError> {
    let Some(checkpoints) = settings.session.checkpoints.clone().filter(|_| !settings.command.sandbox.is_read_only_view()) else {
        return Ok(None);
    };
    let mark = settings.session.changes.as_ref().map(mark);
    let mut before =
        WorkspaceState { checkpoints, taken: Vec::new(), watched: Vec::new(), directories: Vec::new(), files: 0, mark };
    if let Some(changes) = SessionChanges::new(settings) {
        changes.note_others().await;
    }
    for root in roots(settings) {
        let (files, directories) =
            entries(settings, &root, kill).await.map_err(|error| CheckpointError { message: error.message })?;
        before.files += files.len();
        let taken = before.checkpoints.take(root, files).await?;
        let watched = match &settings.session.changes {
            Some(changes) => changes.begin(&taken).await,
            None => None,
        };
        before.watched.push(watched);
        before.directories.push(directories);
        before.taken.push(taken);
    }
    if let (Some(changes), Some(words)) = (&settings.session.changes, before.describe_missing()) {
        changes.note_gap(words).await;
    }
    Ok(Some(before))
}

impl WorkspaceState {
    /// Returns a copy of the mark, for a command that continues in the background.
    pub(in crate::tools) fn mark(&self) -> Option<WriteMark> {
        self.mark.as_ref().map(WriteMark::for_background)
    }

    /// Describes the files that are missing from the snapshot. Returns `None` if it is complete.
    fn describe_missing(&self) -> Option<String> {
        let count: u64 = self.taken.iter().map(|taken| taken.left_out_count).sum();
        let (path, why) = self.taken.iter().flat_map(|taken| &taken.left_out).next()?;
        let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        Some(format!("not in the snapshot taken before the command: {}{others} ({why})", path.display()))
    }

    /// Returns the command's changes for display. Errors are merely logged, because the command has already run.
    pub(in crate::tools) async fn into_proposal(self, settings: &Arc<ToolSettings>) -> Option<Proposal> {
        let shared = self.mark.as_ref().is_some_and(WriteMark::overlaps_others);
        let notes = self.describe_missing().into_iter().chain(shared.then(|| SHARED.to_owned())).collect();
        let (mut shown, checkpoints) =
            (ChangeSummary { notes, shared, ..ChangeSummary::default() }, Arc::clone(&self.checkpoints));
        for (root, changes) in self.into_differences(settings).await {
            for one in changes {
                shown.add(one, &root, &*checkpoints, settings).await;
            }
        }
        let proposal = shown.proposal()?;
        let paths = proposal.paths.clone();
        Some(mark_files(proposal, paths.iter().map(PathBuf::as_path), settings))
    }

    /// Records the changes that aye itself has made since the snapshot, so they are not attributed to a command that is
    /// running at the same time.
    pub(in crate::tools) async fn record_own_changes(self, settings: &Arc<ToolSettings>) {
        let changed = self.into_differences(settings).await;
        if let Some(changes) = &settings.session.changes {
            let paths = |(root, changed): (PathBuf, Vec<PathDifference>)| changed.into_iter().map(move |one| root.join(one.path));
            changes.record_write(&changed.into_iter().flat_map(paths).collect::<Vec<_>>());
        }
    }

    /// Returns the differences below each root, except for writes made by aye's tools in this or another session.
    /// Records them in the session's list of changes.
    pub(in crate::tools) async fn into_differences(self, settings: &Arc<ToolSettings>) -> Vec<(PathBuf, Vec<PathDifference>)> {
        let mut different = Vec::new();
        if self.files > MAX_RESCANNED {
            return different;
        }
        for ((taken, watched), before) in self.taken.into_iter().zip(self.watched).zip(self.directories) {
            let root = taken.root.clone();
            let found = match entries(settings, &root, &CancellationToken::new()).await {
                Ok((files, now)) => {
                    if let Some(watched) = &watched {
                        watched.directories(&before, &now).await;
                    }
                    self.checkpoints.changes(taken, files).await
                }
                Err(error) => Err(CheckpointError { message: error.message }),
            };
            match found {
                Ok(mut changes) => {
                    if let Some(mark) = &self.mark {
                        changes.retain(|one| !mark.is_of_a_tool(&root.join(&one.path)));
                    }
                    if let Some(watched) = watched {
                        changes = watched.without_others(changes).await;
                        watched.record_changes(changes.clone()).await;
                    }
                    different.push((root, changes));
                }
                Err(error) => tracing::warn!(%error, "a command's changes are unknown"),
            }
        }
        different
    }
}

fn roots(settings: &ToolSettings) -> Vec<PathBuf> {
    let roots = &settings.command.sandbox.paths.roots;
    if roots.is_empty() { vec![settings.workspace.clone()] } else { roots.clone() }
}

#[derive(Default)]
struct ChangeSummary {
    paths: Vec<PathBuf>,
    diff: FileDiffs,
    /// Size in bytes of the diff as text.
    diff_bytes: usize,
    bytes: u64,
    without: usize,
    added: usize,
    removed: usize,
    notes: Vec<String>,
    /// Whether another command was running at the same time.
    shared: bool,
}

impl ChangeSummary {
    async fn add(&mut self, changed: PathDifference, root: &Path, checkpoints: &dyn Checkpoints, settings: &ToolSettings) {
        let real = root.join(&changed.path);
        let name = crate::tools::paths::display_path_one_line(&real, settings);
        self.bytes += if let StoredState::File { bytes, .. } = changed.after { bytes } else { 0 };
        let before = match &changed.before {
            StoredState::File { content, bytes, .. } if *bytes <= MAX_FILE_BYTES => {
                checkpoints.content(*content).await.ok().and_then(|bytes| prepare_content(&bytes, settings))
            }
            other => describe_non_file(other),
        };
        let after = match &changed.after {
            StoredState::File { bytes, .. } if *bytes <= MAX_FILE_BYTES => {
                crate::sys::file::read(&real, MAX_FILE_BYTES).ok().and_then(|bytes| prepare_content(&bytes, settings))
            }
            other => describe_non_file(other),
        };
        self.paths.push(real);
        let (Some(before), Some(after)) = (before, after) else {
            self.without += 1;
            return;
        };
        let (diff, added, removed) = path_diff(&name, (&changed.before, &before), (&changed.after, &after));
        let bytes = diff.text_bytes();
        if self.diff_bytes + bytes > MAX_DIFF_BYTES {
            self.without += 1;
            return;
        }
        (self.added, self.removed) = (self.added + added, self.removed + removed);
        self.diff_bytes += bytes;
        self.diff.push(diff);
    }

    fn proposal(mut self) -> Option<Proposal> {
        let count = self.paths.len();
        if count == 0 {
            return None;
        }
        let files = format_count(count as u64, "file", "files");
        if self.without > 0 {
            self.notes.push(format!("{} of them have no diff: they are binary or large", self.without));
        }
        Some(Proposal {
            summary: if self.shared {
                format!("{files} changed while this and another command ran, +{} −{}", self.added, self.removed)
            } else {
                format!("changed {files} +{} −{}", self.added, self.removed)
            },
            diff: self.diff,
            paths: self.paths,
            bytes: self.bytes,
            notes: self.notes,
            ..Proposal::default()
        })
    }
}

/// Returns the text to use for an entry, other than a regular file, in a comparison. Returns `None` if there is no such
/// text.
fn describe_non_file(stood: &StoredState) -> Option<String> {
    match stood {
        StoredState::Missing => Some(String::new()),
        StoredState::Link { to } => Some(to.display().to_string()),
        StoredState::File { .. } | StoredState::Unkept => None,
    }
}
