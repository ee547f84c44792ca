//! The states of a session and of its task, as other programs know them.

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

/// Within a session that runs.
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

/// Where the task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskState {
    pub task_id: TaskId,
    pub status: TaskStatus,
    pub step_count: u32,
    pub max_steps: u32,
}
