//! Denials of calls: the reasons that the journal stores, and the errors that the model gets.

use crate::protocol::ErrorCode;

/// Prefix of the reason of a denial after a timeout.
pub(super) const NO_ANSWER: &str = "no answer within";
/// Reason of a denial caused by the end of a task.
pub(super) const CANCELLED: &str = "the task was cancelled";

/// Returns the error for a denied call: denied by the user, timed out, or cancelled with the task.
pub(super) fn denial(reason: Option<&str>) -> (ErrorCode, String) {
    match reason {
        Some(reason) if reason.starts_with(NO_ANSWER) => {
            (ErrorCode::ApprovalTimeout, format!("not approved: {reason}. Continue without it, or say what you need it for."))
        }
        Some(CANCELLED) => (ErrorCode::Cancelled, "the task was stopped before this call ran".to_owned()),
        Some(reason) => (ErrorCode::UserDenied, format!("the user denied this call: {reason}")),
        None => (ErrorCode::UserDenied, "the user denied this call".to_owned()),
    }
}
