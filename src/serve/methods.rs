//! The methods: their parameters and their results. The page about the protocol is printed from these types.

use super::fault::{Fault, FaultCode};
use crate::protocol::{Approval, CallId, Mode, SessionId, SessionStatus, StepId, TaskState, WorkspaceId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Who the client is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    pub name: String,
    pub version: String,
}

/// Begins a session in a directory, under the policy that holds there.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSession {
    pub client_info: ClientInfo,
    /// What the client can do, in its own words. Nothing depends on it in this version.
    #[serde(default)]
    pub supported_capabilities: Vec<String>,
    /// The directory to work in; without one it is the directory of the process, or what `-C` names.
    #[serde(default)]
    pub workspace_hint: Option<PathBuf>,
    /// `PROVIDER/NAME`; without one the model that is set.
    #[serde(default)]
    pub model: Option<String>,
    /// How much runs without a question: never more than the process was started with.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// The version of this protocol that the client speaks, where it cares: `1`.
    #[serde(default)]
    pub protocol_version: Option<Value>,
}

/// Resumes a session of the store, and continues what was not done when its process ended. In a process whose own session is paused
/// it reads the policy again and continues that one; the result names the policy and the tools that are in force then.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumeSession {
    /// Its id, or the start of one: at least 6 hex digits.
    pub session_id: String,
    /// `PROVIDER/NAME`; without one the model that was asked last.
    #[serde(default)]
    pub model: Option<String>,
    /// As in `CreateSession`.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// As in `CreateSession`.
    #[serde(default)]
    pub protocol_version: Option<Value>,
}

/// Begins a task. Answered once it has begun; what comes of it is told by events. Refused while the session is paused.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartTask {
    /// What to do, in words.
    pub prompt: String,
    #[serde(default)]
    pub task_options: TaskOptions,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskOptions {
    /// Requests to the model before the task fails with `max_steps_exceeded`; no more than `--max-steps` allows.
    #[serde(default)]
    pub max_steps: Option<u32>,
}

/// Stops the task: the model at once, running tools are waited for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelTask {
    pub task_id: String,
    /// Running commands are killed.
    #[serde(default)]
    pub force: bool,
}

/// What changed since the session began, or since one of its tasks did, and what would change by a yes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetPatchPreview {
    #[serde(default)]
    pub task_id: Option<String>,
}

/// Answers an approval.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApproveAction {
    pub approval_id: String,
    pub decision: Verdict,
    /// Of a denial: the model is told.
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Approved,
    Denied,
}

/// Ends the session and the process. A task that runs is cancelled, its running tools are waited for.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    /// Running commands are killed.
    #[serde(default)]
    pub force: bool,
}

/// The result of `CreateSession`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionReady {
    pub session_id: SessionId,
    pub workspace_id: WorkspaceId,
    pub session_status: SessionStatus,
    /// `bundle_version` of the policy; its name where it has none.
    pub policy_bundle_version: String,
    /// Names of the tools that the policy offers the model, also of those that it loads on demand.
    pub available_tools: Vec<String>,
}

/// The result of `ResumeSession`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionResumed {
    #[serde(flatten)]
    pub ready: SessionReady,
    /// The task that goes on, or the last one that was.
    pub task: Option<TaskState>,
    /// The last step that was done to its end.
    pub step_cursor: Option<StepId>,
    /// Calls that were under way when the process ended and whose outcome nobody knows: the model is told, none is run again.
    pub interrupted: Vec<Interrupted>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupted {
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub summary: String,
    /// What is known of it.
    pub known: String,
}

/// The result of `StartTask`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskBegun {
    pub task_id: String,
}

/// The result of `CancelTask`: the end is told by `task_cancelled`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelling {
    /// `cancelling`
    pub status: &'static str,
}

/// The result of `GetSessionState`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStateTold {
    pub session_id: SessionId,
    pub session_status: SessionStatus,
    /// The task that is, or the last one that was.
    pub task: Option<TaskState>,
    /// As `approval_requested` told them.
    pub pending_approvals: Vec<Approval>,
}

/// The result of `GetPatchPreview`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchPreview {
    pub files: Vec<Patch>,
    /// What else is to be known: what was not looked at, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// Relative to the workspace where it lies in it.
    pub path: String,
    pub status: PatchStatus,
    /// Unified; empty where there is none to show, and then `note` says why.
    pub diff: String,
    /// Of what is pending: the approval that would let it happen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PatchStatus {
    /// It would change: an approval waits.
    Pending,
    Added,
    Modified,
    Deleted,
    /// Only the permission bits.
    ModeChanged,
    /// A file became a link, or a link a file.
    TypeChanged,
}

/// The result of `ApproveAction`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionDecided {
    /// The decision, now that it is written down.
    pub status: Verdict,
}

/// The result of `Shutdown`: the last line there is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// `SESSION_COMPLETED`, `SESSION_CANCELLED` where a task was cancelled, `SESSION_FAILED` where its end could not be saved.
    pub status: SessionStatus,
}

/// The parameters, or what is wrong with them, in words. What is not known is passed over.
pub fn params<T: DeserializeOwned>(method: &str, given: Map<String, Value>) -> Result<T, Fault> {
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!("`{path}`: ") };
        Fault::new(FaultCode::InvalidParams, format!("invalid parameters for `{method}`: {place}{}", error.inner()))
    })
}
