//! Errors for denied calls, which are sent to the model.

use crate::protocol::{CallDenial, DENIED_BY_SERVICE, Denier, ErrorCode, FileDiagnostics, NO_USER, POLICY_DENIES, Proposal};

/// Maximum number of errors listed in a denial.
const MAX_ERROR_ROWS: usize = 10;
/// Message of a denial by the user, without the reason.
const USER_DENIED: &str = "the user denied this call";

/// Returns the error for a denied call.
pub(super) fn denial_error(denial: &CallDenial) -> (ErrorCode, String) {
    let reason = denial.reason.as_deref();
    match denial.by {
        Denier::User => {
            (ErrorCode::UserDenied, reason.map_or_else(|| USER_DENIED.to_owned(), |reason| format!("{USER_DENIED}: {reason}")))
        }
        Denier::Service => (ErrorCode::UserDenied, format!("this call was {}", reason.unwrap_or(DENIED_BY_SERVICE))),
        Denier::Timeout => {
            let reason = reason.unwrap_or("no answer in time");
            (ErrorCode::ApprovalTimeout, format!("not approved: {reason}. Continue without it, or say what you need it for."))
        }
        Denier::Cancel => (ErrorCode::Cancelled, "the task was stopped before this call ran".to_owned()),
        Denier::Nobody => (ErrorCode::NoApprover, format!("denied: {NO_USER}")),
        Denier::Policy => (ErrorCode::PolicyDenied, reason.unwrap_or(POLICY_DENIES).to_owned()),
        Denier::AgentEnd => (ErrorCode::Cancelled, "the agent ended before this call ran".to_owned()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{NO_ANSWER, TASK_CANCELLED};

    #[test]
    fn the_error_depends_on_who_denied_the_call_and_not_on_the_reason() {
        let error = |by, reason: &str| denial_error(&CallDenial { by, reason: Some(reason.to_owned()) });
        for reason in [TASK_CANCELLED, NO_ANSWER, "no answer within 5 min", NO_USER, DENIED_BY_SERVICE, POLICY_DENIES] {
            let expected = (ErrorCode::UserDenied, format!("the user denied this call: {reason}"));
            assert_eq!(error(Denier::User, reason), expected);
            for (by, code) in [
                (Denier::Service, ErrorCode::UserDenied),
                (Denier::Timeout, ErrorCode::ApprovalTimeout),
                (Denier::Cancel, ErrorCode::Cancelled),
                (Denier::Nobody, ErrorCode::NoApprover),
                (Denier::Policy, ErrorCode::PolicyDenied),
            ] {
                assert_eq!(error(by, reason).0, code, "{by:?} {reason}");
            }
        }
    }
}
