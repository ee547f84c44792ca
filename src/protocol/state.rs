//! Session and task states as exposed to other programs.

use super::TaskId;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SessionStatus {
    #[serde(rename = "SESSION_CREATED")]
    Created,
    #[serde(rename = "SESSION_RUNNING")]
    Running,
    #[serde(rename = "SESSION_PAUSED")]
    Paused,
    #[serde(rename = "SESSION_COMPLETED")]
    Completed,
    #[serde(rename = "SESSION_FAILED")]
    Failed,
    #[serde(rename = "SESSION_CANCELLED")]
    Cancelled,
}

/// Status of a task in a running session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskStatus {
    Idle,
    TaskRunning,
    WaitingForLlm,
    ProcessingResponse,
    CheckingPolicy,
    WaitingForApproval,
    ExecutingTools,
    TaskCompleted,
    TaskFailed,
    TaskCancelled,
}

/// State of a task, including its progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskState {
    pub task_id: TaskId,
    pub status: TaskStatus,
    pub step_count: u32,
    pub max_steps: u32,
}

/// State of a session and its task, returned by `GetSessionState`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSnapshot {
    pub session_status: SessionStatus,
    /// Current task, or the most recent one if no task is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskState>,
}

impl SessionStatus {
    #[cfg(test)]
    pub const ALL: [Self; 6] = [Self::Created, Self::Running, Self::Paused, Self::Completed, Self::Failed, Self::Cancelled];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "SESSION_CREATED",
            Self::Running => "SESSION_RUNNING",
            Self::Paused => "SESSION_PAUSED",
            Self::Completed => "SESSION_COMPLETED",
            Self::Failed => "SESSION_FAILED",
            Self::Cancelled => "SESSION_CANCELLED",
        }
    }
}

impl TaskStatus {
    #[cfg(test)]
    pub const ALL: [Self; 10] = [
        Self::Idle,
        Self::TaskRunning,
        Self::WaitingForLlm,
        Self::ProcessingResponse,
        Self::CheckingPolicy,
        Self::WaitingForApproval,
        Self::ExecutingTools,
        Self::TaskCompleted,
        Self::TaskFailed,
        Self::TaskCancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "IDLE",
            Self::TaskRunning => "TASK_RUNNING",
            Self::WaitingForLlm => "WAITING_FOR_LLM",
            Self::ProcessingResponse => "PROCESSING_RESPONSE",
            Self::CheckingPolicy => "CHECKING_POLICY",
            Self::WaitingForApproval => "WAITING_FOR_APPROVAL",
            Self::ExecutingTools => "EXECUTING_TOOLS",
            Self::TaskCompleted => "TASK_COMPLETED",
            Self::TaskFailed => "TASK_FAILED",
            Self::TaskCancelled => "TASK_CANCELLED",
        }
    }
}
