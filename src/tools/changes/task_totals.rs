//! Counts the file changes made by each task, for the list of rewind points.

use super::{SessionChanges, log_failure};
use crate::ports::{ContentId, FileRewind, StoredState, TaskChangeCounts, Touch};
use crate::protocol::TaskId;
use crate::tools::diff::{path_diff, prepare_content};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum file size in bytes for which changed lines are counted.
const MAX_FILE_BYTES: u64 = 256 << 10;
/// Time limit for counting lines. Files are counted even after that.
const MAX_TIME: Duration = Duration::from_secs(2);

/// State of a path before a task first changed it and after the task last changed it.
struct Span {
    before: StoredState,
    before_mark: Vec<u8>,
    after: Option<Vec<u8>>,
}

impl SessionChanges<'_> {
    pub(in crate::tools) async fn task_totals(&self) -> Vec<TaskChangeCounts> {
        let Some(trail) = log_failure(self.log.baselines().trail(self.log.session().clone(), 1).await) else {
            return Vec::new();
        };
        let begun = Instant::now();
        let mut told = Vec::new();
        for (task_id, paths) in group_by_task(trail.files) {
            let mut changes = TaskChangeCounts { task_id, files: 0, added: 0, removed: 0 };
            for (path, span) in paths {
                if span.after.as_ref().is_none_or(|after| *after == span.before_mark) {
                    continue;
                }
                changes.files += 1;
                if begun.elapsed() < MAX_TIME
                    && let Some((added, removed)) = self.lines(&path, &span).await
                {
                    changes.added += added;
                    changes.removed += removed;
                }
            }
            told.push(changes);
        }
        told
    }

    /// Counts the added and removed lines. Returns `None` if either content is unavailable.
    async fn lines(&self, path: &Path, span: &Span) -> Option<(u64, u64)> {
        let before = match &span.before {
            StoredState::File { content, bytes, .. } if *bytes <= MAX_FILE_BYTES => self.text(*content).await?,
            StoredState::Missing => String::new(),
            StoredState::File { .. } | StoredState::Link { .. } | StoredState::Unkept => return None,
        };
        let after = match span.after.as_deref()? {
            // The mark of a file starts with the hash of its content.
            [1, rest @ ..] => {
                let id = ContentId(rest.get(..32)?.try_into().ok()?);
                if let Some(text) = self.text(id).await {
                    text
                } else {
                    // Only overwritten content is stored. The latest content is in the file itself.
                    let bytes = crate::sys::file::read(path, MAX_FILE_BYTES).ok()?;
                    (blake3::hash(&bytes).as_bytes() == &id.0).then(|| prepare_content(&bytes, self.settings))??
                }
            }
            [0] => String::new(),
            _ => return None,
        };
        let (_, added, removed) = path_diff("", (&span.before, &before), (&span.before, &after));
        Some((added as u64, removed as u64))
    }

    async fn text(&self, id: ContentId) -> Option<String> {
        let bytes = self.log.checkpoints().content(id).await.ok()?;
        (bytes.len() as u64 <= MAX_FILE_BYTES).then(|| prepare_content(&bytes, self.settings))?
    }
}

fn group_by_task(files: Vec<Touch>) -> BTreeMap<TaskId, BTreeMap<PathBuf, Span>> {
    let mut tasks: BTreeMap<TaskId, BTreeMap<PathBuf, Span>> = BTreeMap::new();
    for touch in files.into_iter().filter(|touch| !touch.by.is_empty()) {
        let Some(task) = touch.task.filter(|task| FileRewind::rewind_number(task).is_none()) else { continue };
        let paths = tasks.entry(task).or_default();
        if let Some(span) = paths.get_mut(&touch.path) {
            span.after = touch.after.or(span.after.take());
        } else {
            let span = Span { before: touch.before.stood, before_mark: touch.before.mark, after: touch.after };
            paths.insert(touch.path, span);
        }
    }
    tasks
}
