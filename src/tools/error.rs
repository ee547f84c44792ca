//! Errors shared by several tools.

use crate::protocol::{ErrorCode, ToolError};

pub(super) fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidRequest, message)
}

pub(super) fn amendment_error() -> ToolError {
    invalid("this call can only be approved unchanged, or denied")
}

/// Returns the error for a call that was denied under a policy that has changed in the meantime.
pub(super) fn stale_denial() -> ToolError {
    ToolError::new(ErrorCode::Conflict, "the policy changed since the call was checked; nothing was done. Try again")
}
