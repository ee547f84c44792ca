//! `aye sessions fork`: creates a session with the same history.

use super::{export, import, one_line};
use crate::app::exit::Exit;
use crate::app::place::Place;
use crate::app::trouble::Trouble;
use crate::protocol::{ForkUntil, SessionId, TaskId};
use crate::session::{Change, SessionState};
use crate::store::{Parent, Store, StoreError};
use std::ops::ControlFlow;

/// Suffix of the title of a fork.
const MARK: &str = " (fork)";
const TITLE_CHARS: usize = 80;

pub fn run(place: &Place, id: &str) -> Result<Exit, Trouble> {
    let store = crate::app::open_store(place)?;
    let summary = store.find(id)?;
    let new = fork(&store, place, &summary.session_id, &ForkUntil::End)?;
    let short = new.as_str().get(..8).unwrap_or(new.as_str());
    crate::app::say(&format!("forked session {}: {}\n", one_line(summary.session_id.as_str()), new));
    crate::app::warn(&format!("to continue: `aye --resume {short}`"));
    Ok(Exit::Completed)
}

/// Copies all records, or the first ones, and returns the ID of the fork. Like an import, it has no rules, no policy
/// and no budget, and nothing that runs in the original is running in it.
pub fn fork(store: &Store, place: &Place, id: &SessionId, until: &ForkUntil) -> Result<SessionId, Trouble> {
    let mut summary = store.find(id.as_str())?;
    let title = summary.title.take().unwrap_or_default();
    let kept: String = title.trim_end_matches(MARK).chars().take(TITLE_CHARS - MARK.len()).collect();
    summary.title = Some(format!("{kept}{MARK}"));
    let (most, draft) = match until {
        ForkUntil::End => (None, None),
        ForkUntil::Records { count } => (Some(*count), None),
        ForkUntil::Prompt { task_id } => {
            let Some((count, prompt)) = before(store, &summary.session_id, task_id)? else {
                return Err(Trouble::failed("the session no longer contains this prompt".to_owned()));
            };
            (Some(count), Some(prompt))
        }
    };
    let contents = export::contents(&place.artifacts(Some(&summary.session_id)));
    let (mut checkpoint, records) = export::checkpoint_of(store, &summary, Some(contents), most)?;
    // The draft of the original is not copied.
    checkpoint.aye.draft = draft.unwrap_or_default();
    let text = export::as_json(&checkpoint)?;
    let workspace = std::path::PathBuf::from(&summary.workspace);
    import::copy(store, place, &workspace, &text, Parent { id: summary.session_id, records })
}

/// Returns the number of records before a prompt, and its text.
fn before(store: &Store, id: &SessionId, task: &TaskId) -> Result<Option<(u64, String)>, StoreError> {
    let (mut state, mut found) = (SessionState::default(), None);
    store.for_each_record(id, |written| {
        let before = state.records;
        match state.apply(&written.record).change {
            Change::TaskStarted { prompt, .. } if prompt.task_id == *task => {
                found = Some((before, prompt.typed().to_owned()));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    })?;
    Ok(found)
}
