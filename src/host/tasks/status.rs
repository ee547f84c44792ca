//! Determines the state of a task for lists, from its journal and the process that uses it.

use super::changes::TaskChanges;
use super::description::{CheckResult, CopyKind, TaskDescription, TaskNotes};
use super::directory::{TaskDirectory, TaskUse};
use crate::host::error::CliError;
use crate::protocol::ListedTaskState;
use crate::session::{SessionState, TaskStage, denied_calls};
use crate::store::Store;
use serde::Serialize;
use std::path::PathBuf;

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskSummary {
    pub id: String,
    pub state: ListedTaskState,
    pub prompt: String,
    pub workspace: PathBuf,
    pub created: jiff::Timestamp,
    /// Branch of the worktree, if the task uses one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Process that is using the task, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Cost in US dollars, or `null` if no price is known.
    pub cost_usd: Option<f64>,
    pub estimated: bool,
    /// Number of changed files, including those in conflict, or `null` if the changes cannot be read.
    pub changed_files: Option<usize>,
    /// Number of changed files that were also changed in the workspace.
    pub conflicts: usize,
    /// Number of actions since the last prompt that were denied.
    pub denied: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckResult>,
    /// Reason the task needs the user, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

/// Information from a task's journal.
#[derive(Debug, Default)]
pub(crate) struct JournalFacts {
    pub stage: Option<TaskStage>,
    pub cost_usd: Option<f64>,
    pub estimated: bool,
    pub waits_for: Option<String>,
    pub denied: u64,
}

impl JournalFacts {
    /// Reads a task's journal. The result is empty if the task's session has not started.
    pub(crate) fn read(task: &TaskDirectory) -> Result<Self, CliError> {
        let mut facts = Self::default();
        if !task.data().join("aye.db").exists() {
            return Ok(facts);
        }
        let store = Store::open(&task.data())?;
        let sessions = store.sessions(None)?;
        for session in &sessions {
            let totals = store.tally(&session.session_id)?.totals;
            if let Some(cost) = totals.cost_usd {
                facts.cost_usd = Some(facts.cost_usd.unwrap_or(0.0) + cost);
            }
            facts.estimated |= totals.estimated;
        }
        // The latest session comes first.
        if let Some(session) = sessions.iter().find(|session| !session.of_agent && session.title.is_some()) {
            let records = store.load(&session.session_id)?.records;
            facts.denied = denied_calls(&records);
            let state = SessionState::from_records(&records);
            facts.stage = state.task().map(|task| task.stage);
            facts.waits_for = waiting_call(&state);
        }
        Ok(facts)
    }
}

/// Returns the summary of the call that is waiting for the user.
fn waiting_call(state: &SessionState) -> Option<String> {
    use crate::session::CallStage;
    let waits = |stage: &CallStage| matches!(stage, CallStage::Asking);
    state.calls().iter().find(|call| waits(&call.stage)).map(|call| call.summary.clone())
}

impl TaskSummary {
    /// Determines the state of a task.
    ///
    /// # Errors
    /// Returns an error if the task or its journal cannot be read.
    pub(crate) fn read(task: &TaskDirectory, description: &TaskDescription) -> Result<Self, CliError> {
        let (holder, notes, facts) = (task.holder(), task.notes(), JournalFacts::read(task)?);
        let state = match holder.as_ref().map(|holder| holder.purpose) {
            Some(TaskUse::Run) => ListedTaskState::Running,
            Some(TaskUse::Open) => ListedTaskState::Open,
            Some(TaskUse::Changes) | None => state_without_process(&facts, &notes),
        };
        let changes = TaskChanges::read(task, description);
        let (changed_files, conflicts) = match &changes {
            Ok(changes) => (Some(changes.count()), changes.collected.conflicts.len()),
            Err(_) => (None, 0),
        };
        Ok(Self {
            id: task.id().to_owned(),
            state,
            prompt: description.prompt.clone(),
            workspace: description.workspace.clone(),
            created: description.created,
            branch: match &description.copy {
                CopyKind::Layer => None,
                CopyKind::Worktree { branch, .. } => Some(branch.clone()),
            },
            pid: holder.map(|holder| holder.instance.pid),
            cost_usd: facts.cost_usd,
            estimated: facts.estimated,
            changed_files,
            conflicts,
            denied: facts.denied,
            check: notes.check,
            waits_for: facts.waits_for,
        })
    }
}

/// Determines the state of a task that is not in use by any process.
fn state_without_process(facts: &JournalFacts, notes: &TaskNotes) -> ListedTaskState {
    let waits = facts.waits_for.is_some() || notes.needs_user;
    match facts.stage {
        Some(TaskStage::Completed) => ListedTaskState::Done,
        Some(TaskStage::Failed) => ListedTaskState::Failed,
        Some(TaskStage::Cancelled) => ListedTaskState::Stopped,
        Some(TaskStage::Waiting | TaskStage::Running | TaskStage::Paused) | None if notes.is_stopped => ListedTaskState::Stopped,
        Some(TaskStage::Waiting) => ListedTaskState::NeedsYou,
        Some(TaskStage::Running | TaskStage::Paused) if waits => ListedTaskState::NeedsYou,
        // A process that is asked to exit pauses the task.
        Some(TaskStage::Running | TaskStage::Paused) | None => ListedTaskState::Interrupted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_without_a_process_has_the_state_of_its_journal() {
        let nothing = TaskNotes::default();
        let stopped = TaskNotes { is_stopped: true, ..TaskNotes::default() };
        let waits = TaskNotes { needs_user: true, ..TaskNotes::default() };
        for (stage, notes, state) in [
            (None, &nothing, ListedTaskState::Interrupted),
            (Some(TaskStage::Running), &nothing, ListedTaskState::Interrupted),
            (Some(TaskStage::Running), &stopped, ListedTaskState::Stopped),
            (Some(TaskStage::Running), &waits, ListedTaskState::NeedsYou),
            (Some(TaskStage::Waiting), &nothing, ListedTaskState::NeedsYou),
            (Some(TaskStage::Paused), &nothing, ListedTaskState::Interrupted),
            (Some(TaskStage::Paused), &waits, ListedTaskState::NeedsYou),
            (Some(TaskStage::Paused), &stopped, ListedTaskState::Stopped),
            (Some(TaskStage::Completed), &stopped, ListedTaskState::Done),
            (Some(TaskStage::Completed), &waits, ListedTaskState::Done),
            (Some(TaskStage::Failed), &nothing, ListedTaskState::Failed),
        ] {
            let facts = JournalFacts { stage, ..JournalFacts::default() };
            assert_eq!(state_without_process(&facts, notes), state, "{stage:?} {notes:?}");
        }
        let asked =
            JournalFacts { waits_for: Some("$ make".to_owned()), stage: Some(TaskStage::Paused), ..JournalFacts::default() };
        assert_eq!(state_without_process(&asked, &nothing), ListedTaskState::NeedsYou);
    }
}
