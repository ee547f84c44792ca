//! What went wrong, said for a person.

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
        Self { kind, message: message.into(), hint: hint.into(), retryable, request_id: None }
    }
}
