//! Failures, described for the user.

use serde::{Deserialize, Serialize};

/// Kinds of failure in `task_failed`. Front ends and exit codes depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    RateLimited,
    Overloaded,
    Authentication,
    Billing,
    Permission,
    NotFound,
    ContextTooLong,
    GuardrailBlocked,
    InvalidRequest,
    Network,
    Timeout,
    CutStream,
    Protocol,
    BudgetExceeded,
    MaxStepsExceeded,
    PolicyExpired,
    /// The journal cannot be written. The session waits until it can be, or until the user continues unsaved.
    NotSaved,
    /// Another process owns the session, or it no longer exists. It cannot continue here.
    NotHeld,
    Internal,
}

/// A failure that ends or pauses a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    /// Cause; contains the provider's own message unchanged.
    pub message: String,
    /// Suggested action.
    pub hint: String,
    /// Whether a retry of the same request may succeed.
    pub retryable: bool,
    /// Request ID at the provider, for support requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// HTTP status of the response, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let retryable = matches!(
            kind,
            FailureKind::RateLimited
                | FailureKind::Overloaded
                | FailureKind::Network
                | FailureKind::Timeout
                | FailureKind::CutStream
                | FailureKind::Protocol
        );
        Self { kind, message: message.into(), hint: hint.into(), retryable, request_id: None, status: None }
    }

    /// Returns the message with the provider and the status, because a provider's message alone often lacks context.
    pub fn with_provider(&self, provider: &str) -> String {
        let Some(status) = self.status else { return self.message.clone() };
        let did = match self.kind {
            FailureKind::Authentication => "rejected the API key",
            FailureKind::RateLimited => "limited the request rate",
            FailureKind::Overloaded if matches!(status, 503 | 529) => "is overloaded",
            FailureKind::Overloaded | FailureKind::Network | FailureKind::Timeout => "failed",
            _ => "rejected the request",
        };
        format!("{provider} {did} ({status}): {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_whose_it_is_and_how_and_what_is_no_answer_says_only_itself() {
        for (kind, status, expected) in [
            (FailureKind::Authentication, Some(401), "acme rejected the API key (401): no"),
            (FailureKind::RateLimited, Some(429), "acme limited the request rate (429): no"),
            (FailureKind::Overloaded, Some(529), "acme is overloaded (529): no"),
            (FailureKind::Overloaded, Some(500), "acme failed (500): no"),
            (FailureKind::InvalidRequest, Some(400), "acme rejected the request (400): no"),
            (FailureKind::Network, None, "no"),
        ] {
            let failure = Failure { status, ..Failure::new(kind, "no", "") };
            assert_eq!(failure.with_provider("acme"), expected);
        }
    }
}
