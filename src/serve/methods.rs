//! Parameters and results of the methods. The protocol documentation is generated from these types.

use super::fault::{FaultCode, RpcError};
use crate::protocol::{
    Approval, CallId, Elicitation, GoalState, MemoryProposal, Mode, PlannedStep, SessionId, SessionStatus, StepId, TaskState,
    WorkspaceId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The identity of the client.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClientInfo {
    pub name: String,
    pub version: String,
}

/// Creates a session in a directory, under the policy of that directory.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateSession {
    pub client_info: ClientInfo,
    /// Capabilities of the client, as free text. This version does not use them.
    #[serde(default)]
    pub supported_capabilities: Vec<String>,
    /// The workspace directory. Default: the directory of the process, or of `-C`.
    #[serde(default)]
    pub workspace_hint: Option<PathBuf>,
    /// The model, as `PROVIDER/NAME`. Default: the configured model.
    #[serde(default)]
    pub model: Option<String>,
    /// The approval mode, at most as permissive as that of the process.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// The protocol version that the client requires: `1`.
    #[serde(default)]
    pub protocol_version: Option<Value>,
}

/// Resumes a stored session and continues work that its previous process left unfinished. If this process's own session
/// is paused, rereads the policy and continues it. The result names the policy and the tools in effect.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumeSession {
    /// The session ID, or at least its first 6 hex digits.
    pub session_id: String,
    /// The model, as `PROVIDER/NAME`. Default: the last model of the session.
    #[serde(default)]
    pub model: Option<String>,
    /// As in `CreateSession`.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// As in `CreateSession`.
    #[serde(default)]
    pub protocol_version: Option<Value>,
}

/// Starts a task. The response is sent once the task has started; events report its outcome. Refused while the session
/// is paused.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartTask {
    /// The prompt.
    pub prompt: String,
    #[serde(default)]
    pub task_options: TaskOptions,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskOptions {
    /// Maximum number of model requests before the task fails with `max_steps_exceeded`; at most `--max-steps`.
    #[serde(default)]
    pub max_steps: Option<u32>,
    /// Makes the prompt a goal: aye starts further tasks until its check passes. `goal_changed` reports the state.
    #[serde(default)]
    pub goal: Option<TaskGoal>,
}

/// The check and the limits of a goal.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskGoal {
    /// The check command. The goal is reached once it exits with 0.
    pub check: String,
    /// Maximum cost in US dollars.
    #[serde(default)]
    pub budget_usd: Option<f64>,
    /// Maximum time in milliseconds.
    #[serde(default)]
    pub time_ms: Option<u64>,
    /// Maximum number of failed checks. Default: 25.
    #[serde(default)]
    pub max_rounds: Option<u32>,
}

/// Continues a paused goal, or ends the goal. The response confirms that the session received the decision;
/// `goal_changed` reports the state.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecideGoal {
    pub decision: GoalDecision,
    /// With `continue`: the command that replaces the check.
    #[serde(default)]
    pub check: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoalDecision {
    Continue,
    /// Ends the goal, and interrupts its running work.
    Stop,
}

/// The result of `DecideGoal`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GoalDecided {
    pub decision: GoalDecision,
}

/// Interrupts the task: the model and running commands stop immediately (SIGINT, and SIGKILL 2 s later), and file
/// changes finish. The response so far stays in the conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelTask {
    pub task_id: String,
    /// Kills all processes that are still running.
    #[serde(default)]
    pub force: bool,
}

/// Returns the changes since the start of the session or of a task, and the changes that wait for approval.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GetPatchPreview {
    #[serde(default)]
    pub task_id: Option<String>,
}

/// Approves or denies a pending approval.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApproveAction {
    pub approval_id: String,
    pub decision: ActionDecision,
    /// The reason for a denial, which is passed to the model.
    #[serde(default)]
    pub reason: Option<String>,
    /// Files and folders whose changes are applied, as listed in the `effects` of a command; other changes are
    /// discarded. Default: all.
    #[serde(default)]
    pub paths: Option<Vec<String>>,
    /// The digest of the effects that were shown (`effects.digest`). Required with `paths`.
    #[serde(default)]
    pub digest: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActionDecision {
    Approved,
    /// Approves a plan, and carries it out without the earlier conversation. The result has the status `approved`. Valid
    /// only if the approval has a `plan`.
    ApprovedInCleanContext,
    Denied,
    /// After a conflict (`effects.conflict`), the command runs again in a copy, and another approval follows for its
    /// effects.
    RunAgain,
}

/// Answers a question from the model (`elicitation_requested` with `wanted.kind` = `question`).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnswerQuestion {
    pub elicitation_id: String,
    /// The label of an option, or any other text. Without it, the user declines to answer, and aye informs the model.
    #[serde(default)]
    pub answer: Option<String>,
}

/// Stops an agent of the running task. The call that started it fails, and the task continues.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StopAgent {
    /// The ID of the agent's session, as in its events.
    pub agent_session_id: SessionId,
}

/// Applies or drops a proposal of the memory inbox.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DecideMemory {
    /// ID of the proposal.
    pub proposal_id: String,
    pub decision: MemoryDecision,
    /// With `apply`: the digest of the proposal that the user saw. If the file has changed since, the request fails.
    #[serde(default)]
    pub digest: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MemoryDecision {
    /// Writes the instruction to its file.
    Apply,
    /// Drops the proposal permanently.
    Drop,
}

/// Ends the session and the process. A running task is cancelled after its running tools have ended.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shutdown {
    /// Kills running commands.
    #[serde(default)]
    pub force: bool,
}

/// The result of `CreateSession`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionReady {
    pub session_id: SessionId,
    pub workspace_id: WorkspaceId,
    pub session_status: SessionStatus,
    /// The `bundle_version` of the policy, or its name.
    pub policy_bundle_version: String,
    /// Names of the tools that the policy offers to the model, including those loaded on demand.
    pub available_tools: Vec<String>,
}

/// The result of `ResumeSession`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionResumed {
    #[serde(flatten)]
    pub ready: SessionReady,
    /// The task that continues, or the last task.
    pub task: Option<TaskState>,
    /// Last completed step.
    pub step_cursor: Option<StepId>,
    /// Calls that were running when the process ended and whose outcome is unknown. aye informs the model; they are not
    /// run again.
    pub interrupted: Vec<Interrupted>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Interrupted {
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub summary: String,
    /// The known part of the outcome.
    pub known: String,
}

/// The result of `StartTask`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskBegun {
    pub task_id: String,
}

/// The result of `CancelTask`; `task_cancelled` reports the end of the task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cancelling {
    /// Always `cancelling`.
    pub status: &'static str,
}

/// The result of `GetSessionState`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionStateTold {
    pub session_id: SessionId,
    pub session_status: SessionStatus,
    /// The current task, or the last one.
    pub task: Option<TaskState>,
    /// The pending approvals, as in `approval_requested`.
    pub pending_approvals: Vec<Approval>,
    /// The open questions from the model, as in `elicitation_requested`.
    pub pending_questions: Vec<Elicitation>,
    /// The steps that the model planned, as in `planned_steps_changed`.
    pub planned_steps: Vec<PlannedStep>,
    /// The active goal, as in `goal_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalState>,
}

/// The result of `GetPatchPreview`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PatchPreview {
    pub files: Vec<Patch>,
    /// Notes, for example about files that were not inspected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Patch {
    /// The path, relative if it is in the workspace.
    pub path: String,
    pub status: PatchStatus,
    /// The unified diff; if empty, `note` gives the reason.
    pub diff: String,
    /// The approval of a pending change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PatchStatus {
    /// A change that waits for approval.
    Pending,
    Added,
    Modified,
    Deleted,
    /// Only the permissions were changed.
    ModeChanged,
    /// A file was replaced by a symlink, or a symlink by a file.
    TypeChanged,
}

/// The result of `ApproveAction`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionDecided {
    /// The recorded decision.
    pub status: ActionDecision,
}

/// The result of `AnswerQuestion`; `elicitation_ended` follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionAnswered {
    /// `answered` or `declined`.
    pub status: &'static str,
}

/// The result of `StopAgent`; an `agent` event with `change: ended` follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoppingAgent {
    /// Always `stopping`.
    pub status: &'static str,
}

/// The result of `ListMemory` and `DecideMemory`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryListed {
    /// The open proposals, oldest first.
    pub proposals: Vec<MemoryProposal>,
    /// The result of the request, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// The result of `Shutdown`, which is the last line of output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShutdownResult {
    /// `SESSION_COMPLETED`, `SESSION_CANCELLED` if a task was cancelled, or `SESSION_FAILED` if the end could not be
    /// saved.
    pub status: SessionStatus,
}

/// Parses the parameters of a method. Unknown parameters are ignored; an error contains the reason.
pub(crate) fn params<T: DeserializeOwned>(method: &str, given: Map<String, Value>) -> Result<T, RpcError> {
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!("`{path}`: ") };
        RpcError::new(FaultCode::InvalidParams, format!("invalid parameters for `{method}`: {place}{}", error.inner()))
    })
}
