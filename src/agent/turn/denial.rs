//! Denials of calls: the reasons stored in the journal, and the errors sent to the model.

use crate::protocol::{DENIED_BY_SERVICE, ErrorCode, FileDiagnostics, NO_USER, Proposal};

/// Maximum number of errors listed in a denial.
const MAX_ERROR_ROWS: usize = 10;

/// Prefix of the denial reason after a timeout.
pub(super) const NO_ANSWER: &str = "no answer within";
/// Denial reason if the task was cancelled.
pub(super) const CANCELLED: &str = "the task was cancelled";

/// Returns the error for a denied call. The call was denied by the user, timed out, was cancelled with its task, or
/// could not be approved because there is no user.
pub(super) fn denial(reason: Option<&str>) -> (ErrorCode, String) {
    match reason {
        Some(reason) if reason.starts_with(NO_ANSWER) => {
            (ErrorCode::ApprovalTimeout, format!("not approved: {reason}. Continue without it, or say what you need it for."))
        }
        Some(NO_USER) => (ErrorCode::NoApprover, format!("denied: {NO_USER}")),
        Some(CANCELLED) => (ErrorCode::Cancelled, "the task was stopped before this call ran".to_owned()),
        Some(reason) if reason.starts_with(DENIED_BY_SERVICE) => (ErrorCode::UserDenied, format!("this call was {reason}")),
        Some(reason) => (ErrorCode::UserDenied, format!("the user denied this call: {reason}")),
        None => (ErrorCode::UserDenied, "the user denied this call".to_owned()),
    }
}

/// Returns the errors that a denied change would have caused according to the language servers, as a note for the
/// model. Empty if there are none.
pub(super) fn new_errors_note(proposal: Option<&Proposal>) -> String {
    let files = proposal.into_iter().flat_map(|proposal| &proposal.diagnostics).filter(|file| file.has_new_errors());
    let rows: Vec<String> = files.flat_map(FileDiagnostics::rows).take(MAX_ERROR_ROWS).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\nErrors reported by the language server for this change:\n{}", rows.join("\n"))
}
