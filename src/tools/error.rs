//! Errors that several tools return.

use crate::protocol::{ErrorCode, ToolError};

pub(super) fn invalid(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidRequest, message)
}

pub(super) fn amendment_error() -> ToolError {
    invalid("this call can only be approved unchanged, or denied")
}

/// Error of a call whose denial was lifted by a policy change in the meantime.
pub(super) fn stale_denial() -> ToolError {
    ToolError::new(ErrorCode::Conflict, "the policy changed since the call was checked; nothing was done. Try again")
}
