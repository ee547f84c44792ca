//! All that a front end may ask for.

use super::{ApprovalId, BudgetLimit, CallId, Decision, Effort, Mode, TaskId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Start a task, or queue it behind the one that runs.
    Prompt {
        text: String,
    },
    /// Say it to the model with the results of the running step; a prompt where no task runs.
    Steer {
        text: String,
    },
    /// Change a message that waits; without words it is taken back. One that was taken by now stays as it was sent.
    EditWaiting {
        id: u64,
        text: String,
    },
    Decide {
        approval_id: ApprovalId,
        decision: Decision,
    },
    /// Run the command that is asked about in a view of its own, and ask about its effects.
    Preview {
        approval_id: ApprovalId,
    },
    /// Let the agent go on while this command runs; without an id, the one that runs longest.
    Background {
        tool_call_id: Option<CallId>,
    },
    /// End a session or a command in the background, by the id the tools give it.
    Stop {
        id: String,
    },
    /// What to do about a call whose outcome a crash left unknown.
    Resolve {
        tool_call_id: CallId,
        resolution: Resolution,
    },
    /// Take back the rule that was kept last in this session.
    UndoGrant,
    /// Say what changed since the session began, or since this task first changed it.
    ListChanges {
        task_id: Option<TaskId>,
    },
    /// Say which rules are kept.
    ListGrants,
    /// Say what this session kept whole.
    ListArtifacts,
    /// Show one of them.
    ReadArtifact {
        uri: String,
    },
    /// Stop the model, start nothing new; running tools finish.
    Cancel,
    /// Kill the running commands too.
    Kill,
    /// Go on with a paused or interrupted task.
    Continue,
    /// Send the request that waits for its repetition now.
    RetryNow,
    /// Put a summary in the place of older messages. `focus`: what it must not lose.
    Compact {
        focus: Option<String>,
    },
    /// Take back the last one.
    UndoCompaction,
    /// Say what fills the window.
    ShowContext,
    /// Say what may be used up, and what is.
    ShowBudget,
    /// Allow more, or less.
    SetBudget {
        limit: BudgetLimit,
    },
    /// Ask another model from now on: `provider/name`.
    SetModel {
        name: String,
    },
    /// Have it think more, or less; without one as it does by itself.
    SetEffort {
        effort: Option<Effort>,
    },
    /// Say which models there are. `ask`: ask the providers too.
    ListModels {
        ask: bool,
    },
    /// Ask more, or less, before something happens; from now on, for this run.
    SetMode {
        mode: Mode,
    },
    /// Read the policy's files again.
    ReloadPolicy,
    /// Keep what the person has typed but not sent.
    SaveDraft {
        text: String,
    },
    /// Save and end.
    Quit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// Ask again, then run again.
    Rerun,
    /// Leave it; the model is told that it was skipped.
    Skip,
    /// Tell the model that the outcome is unknown and let it look.
    TellModel,
}
