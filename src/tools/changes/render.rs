//! Prepares changed files for display: path, kind of change, redacted diff, and who made the change.

use super::ToolSettings;
use crate::ports::{Checkpoints, ContentId, Difference, Differences, StoredState};
use crate::protocol::{ChangeStatus, ChangedFile, ChangedFiles, FileDiffs};
use crate::sys::file;
use crate::tools::diff::{head, path_diff, prepare_content};
use crate::tools::paths::display_path_one_line;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of files to list. Any further files are only counted.
const MAX_FILES: usize = 1_000;
/// Maximum file size in bytes for which a diff is shown.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Size limit in bytes for the diff of one file. If a diff is longer, its lines are only counted.
const MAX_FILE_DIFF_BYTES: usize = 256 << 10;
/// Size limit in bytes for all diffs together.
const MAX_DIFF_BYTES: usize = 2 << 20;
/// Time limit for computing diffs. Once it is exceeded, the remaining files are listed without a diff.
const MAX_TIME: Duration = Duration::from_secs(4);

pub(super) async fn render(
    differences: Differences,
    mut notes: Vec<String>,
    checkpoints: &dyn Checkpoints,
    settings: &Arc<ToolSettings>,
) -> ChangedFiles {
    let mut told = ChangedFiles::default();
    let (begun, mut room) = (Instant::now(), MAX_DIFF_BYTES);
    let mut files = differences.files;
    told.more_files = files.len().saturating_sub(MAX_FILES) as u64;
    files.truncate(MAX_FILES);
    for one in files {
        let before = content(&one.before, checkpoints).await;
        let (for_file, late) = (Arc::clone(settings), begun.elapsed() > MAX_TIME);
        let made = tokio::task::spawn_blocking(move || changed_file(&one, before, late, room, &for_file)).await;
        match made {
            Ok(file) => {
                room = room.saturating_sub(file.diff.text_bytes());
                told.added += file.added;
                told.removed += file.removed;
                told.files.push(file);
            }
            Err(error) => notes.push(format!("cannot compute the diff of a file: {error}")),
        }
    }
    if differences.left_out > 0 {
        notes.push(format!("{} more changed paths exceed the session limit; they are not listed", differences.left_out));
    }
    told.notes = notes;
    told
}

/// One side of a diff: its bytes, or the reason why they are not available.
type Side = Result<Vec<u8>, String>;

async fn content(stood: &StoredState, checkpoints: &dyn Checkpoints) -> Option<Side> {
    let StoredState::File { content, bytes, .. } = stood else { return None };
    Some(if *bytes > MAX_FILE_BYTES { Err(too_large_note(*bytes)) } else { load_content(*content, checkpoints).await })
}

async fn load_content(id: ContentId, checkpoints: &dyn Checkpoints) -> Side {
    checkpoints.content(id).await.map_err(|error| {
        tracing::warn!(%error, "cannot read a baseline");
        "the earlier content is no longer stored".to_owned()
    })
}

fn too_large_note(bytes: u64) -> String {
    format!("large file: {bytes} bytes, no diff")
}

fn changed_file(one: &Difference, before: Option<Side>, late: bool, room: usize, settings: &ToolSettings) -> ChangedFile {
    let name = settings.redactor.redact(&display_path_one_line(&one.path, settings)).text.into_owned();
    let mut file = ChangedFile {
        path: name.clone(),
        status: status(&one.before, &one.now),
        diff: FileDiffs::default(),
        added: 0,
        removed: 0,
        by: one.by.clone(),
        note: None,
    };
    if let Err(why) = diff(one, before, late, room, &name, settings, &mut file) {
        file.note = Some(settings.redactor.redact(&why).text.into_owned());
    }
    file
}

fn status(before: &StoredState, now: &StoredState) -> ChangeStatus {
    match (before, now) {
        (StoredState::Missing, _) => ChangeStatus::Added,
        (_, StoredState::Missing) => ChangeStatus::Deleted,
        (StoredState::File { content: old, .. }, StoredState::File { content: new, .. }) if old == new => {
            ChangeStatus::ModeChanged
        }
        (StoredState::Link { .. }, StoredState::File { .. }) | (StoredState::File { .. }, StoredState::Link { .. }) => {
            ChangeStatus::TypeChanged
        }
        _ => ChangeStatus::Modified,
    }
}

/// Computes a file's diff and adds it to `file`.
///
/// # Errors
///
/// Returns the reason if the diff cannot be shown.
fn diff(
    one: &Difference,
    before: Option<Side>,
    late: bool,
    room: usize,
    name: &str,
    settings: &ToolSettings,
    file: &mut ChangedFile,
) -> Result<(), String> {
    if one.before == StoredState::Unkept || one.now == StoredState::Unkept {
        return Err(one.why.clone().unwrap_or_else(|| "earlier content was not saved".to_owned()));
    }
    if !(settings.paths.may_read)(&one.path) {
        return Err("the policy does not allow reading the file".to_owned());
    }
    if file.status == ChangeStatus::ModeChanged {
        file.diff = head(name, &one.before, &one.now).into();
        return Ok(());
    }
    if late {
        return Err("no diff: too many files changed".to_owned());
    }
    let before = match (&one.before, before) {
        (StoredState::File { .. }, Some(side)) => side?,
        (other, _) => describe_non_file(other),
    };
    let now = match &one.now {
        StoredState::File { bytes, .. } if *bytes > MAX_FILE_BYTES => return Err(too_large_note(*bytes)),
        StoredState::File { .. } => read(&one.path)?,
        other => describe_non_file(other),
    };
    let sizes = (before.len(), now.len());
    let [old, new] = [before, now].map(|bytes| prepare_content(&bytes, settings));
    let (Some(old), Some(new)) = (old, new) else {
        return Err(format!("not text: {} bytes before, {} now", sizes.0, sizes.1));
    };
    let (diff, added, removed) = path_diff(name, (&one.before, &old), (&one.now, &new));
    (file.added, file.removed) = (added as u64, removed as u64);
    if diff.hunks.is_empty() && one.before != StoredState::Missing && one.now != StoredState::Missing {
        return Err("changed only in ways a line diff does not show: line endings, encoding or a secret".to_owned());
    }
    let bytes = diff.text_bytes();
    if bytes > MAX_FILE_DIFF_BYTES || bytes > room {
        return Err(format!("diff not shown: too long ({bytes} bytes)"));
    }
    file.diff = diff.into();
    Ok(())
}

/// Returns the text to use for an entry, other than a regular file, in a comparison.
fn describe_non_file(stood: &StoredState) -> Vec<u8> {
    match stood {
        StoredState::Link { to } => to.display().to_string().into_bytes(),
        StoredState::Missing | StoredState::File { .. } | StoredState::Unkept => Vec::new(),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    file::read(path, MAX_FILE_BYTES).map_err(|error| format!("cannot read the file: {error}"))
}
