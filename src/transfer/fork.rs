//! Forks: copies of a session, or of its beginning.

use super::error::TransferError;
use super::{export, import};
use crate::protocol::{ForkUntil, SessionId, TaskId};
use crate::session::{Change, SessionState};
use crate::store::{ArtifactStore, Parent, Store, StoreError};
use std::ops::ControlFlow;

/// ID of a fork, and notices about anything that was omitted.
pub(crate) struct ForkResult {
    pub session_id: SessionId,
    pub notices: Vec<String>,
}

/// Suffix added to a fork's title.
const MARK: &str = " (fork)";

const TITLE_CHARS: usize = 80;

/// Copies all records of a session, or only those before a given point. As with an import, the copy contains no
/// rules, policy or budget, and work still running in the original is not running in the copy.
pub(crate) fn fork(
    store: &Store,
    artifacts_of: &dyn Fn(&SessionId) -> ArtifactStore,
    id: &SessionId,
    until: &ForkUntil,
) -> Result<ForkResult, TransferError> {
    let mut summary = store.find(id.as_str())?;
    let title = summary.title.take().unwrap_or_default();
    let kept: String = title.trim_end_matches(MARK).chars().take(TITLE_CHARS - MARK.len()).collect();
    summary.title = Some(format!("{kept}{MARK}"));
    let (most, draft) = match until {
        ForkUntil::End => (None, None),
        ForkUntil::Records { count } => (Some(*count), None),
        ForkUntil::Prompt { task_id } => {
            let Some((count, prompt)) = records_before(store, &summary.session_id, task_id)? else {
                return Err(TransferError::Failed("the session no longer contains this prompt".into()));
            };
            (Some(count), Some(prompt))
        }
    };
    let (contents, notices) = export::contents(&artifacts_of(&summary.session_id));
    let (mut checkpoint, records) = export::build_checkpoint(store, &summary, Some(contents), most)?;
    // The original's draft is not copied.
    checkpoint.aye.draft = draft.unwrap_or_default();
    let text = export::as_json(&checkpoint)?;
    let workspace = std::path::PathBuf::from(&summary.workspace);
    let session_id = import::copy(store, artifacts_of, &workspace, &text, Parent { id: summary.session_id, records })?;
    Ok(ForkResult { session_id, notices })
}

/// Returns the number of records before the prompt that started a task, and the text of that prompt. Returns `None`
/// if there is no such task.
fn records_before(store: &Store, id: &SessionId, task: &TaskId) -> Result<Option<(u64, String)>, StoreError> {
    let (mut state, mut found) = (SessionState::default(), None);
    store.for_each_record(id, |written| {
        let before = state.records;
        match state.apply(&written.record).change {
            Change::TaskStarted { prompt, .. } if prompt.task_id == *task => {
                found = Some((before, prompt.typed_text().to_owned()));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    })?;
    Ok(found)
}
