//! Converts the errors of agents to results of the calls that started them.

use crate::protocol::{ErrorCode, ToolError};

pub(super) fn failed(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionFailed, message)
}

pub(super) fn stopped() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "the agent was stopped by the user; it changed nothing")
}
