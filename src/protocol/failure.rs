//! Failures, described for the user.

use serde::{Deserialize, Serialize};

/// The kinds of `task_failed`; front ends and exit codes are chosen by it.
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
    /// The journal cannot be written: nothing goes on before it can, or the person says so (`Command::GoOnUnsaved`).
    NotSaved,
    /// Another process has the session, or it is gone: nothing goes on here, whatever the person says.
    NotHeld,
    Internal,
}

/// A failure that ends or pauses a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    /// What happened; a provider's own sentence stands in it unchanged.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// What the provider calls the request, for whoever asks it about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The status of the answer that refused, where there was one.
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

    /// What happened, with who said it and how: a provider's sentence alone may be about anything.
    pub fn told(&self, provider: &str) -> String {
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
            assert_eq!(failure.told("acme"), expected);
        }
    }
}
