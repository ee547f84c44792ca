//! Failures that end or pause a task, described for the user.

use super::{BudgetScope, BudgetUnit, Problem};
use serde::{Deserialize, Serialize};

/// Kind of failure reported in `task_failed`. Front ends and exit codes depend on it.
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
    /// The journal cannot be written. The session waits until saving works again, or until the user chooses to continue
    /// without saving.
    NotSaved,
    /// Another process owns the session, or the session no longer exists, so it cannot continue in this process.
    NotHeld,
    Internal,
}

/// Change that would let the task continue, in machine-readable form. Each front end words it for its own users.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Remedy {
    /// Follow the hint, then continue the task.
    Continue,
    /// Raise this budget, then continue the task.
    RaiseBudget {
        scope: BudgetScope,
        unit: BudgetUnit,
        /// Suggested limit, in units of `unit`.
        limit: f64,
    },
    /// Assume a price for the model, because its price is unknown, then continue the task.
    AssumePrice,
    /// Change the policy that sets the limit, then continue the task. Alternatively, start a new session.
    ChangePolicy,
    /// Save an API key, then continue the task.
    SaveKey,
}

/// Failure that ends or pauses a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    /// Cause of the failure, including the provider's own message verbatim.
    pub message: String,
    /// Suggested action for the user.
    pub hint: String,
    /// Change that would let the task continue, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// Whether retrying the same request may succeed.
    pub retryable: bool,
    /// Request ID assigned by the provider, for support requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// HTTP status of the response, if a response was received.
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
        Self { kind, message: message.into(), hint: hint.into(), remedy: None, retryable, request_id: None, status: None }
    }

    /// Creates a failure from an error, whose hints are joined into a single hint.
    pub fn from_problem(kind: FailureKind, problem: &Problem) -> Self {
        Self::new(kind, problem.detailed_message(), problem.hints.join("; "))
    }

    /// Adds the change that lets the task continue.
    #[must_use]
    pub fn with_remedy(self, remedy: Remedy) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    /// Returns the message without a leading `LLM_…` error code.
    pub fn text(&self) -> &str {
        let (code, text) = self.message.split_once(": ").unwrap_or(("", &self.message));
        if code.starts_with("LLM_") { text } else { &self.message }
    }

    /// Returns the failure as a user-facing error.
    pub fn problem(&self) -> Problem {
        self.as_problem(self.text().to_owned())
    }

    /// Returns the failure as a user-facing error that names the provider.
    pub fn to_provider_problem(&self, provider: &str) -> Problem {
        self.as_problem(self.with_provider(provider))
    }

    fn as_problem(&self, what: String) -> Problem {
        let hint = Some(self.hint.clone()).filter(|hint| !hint.is_empty());
        Problem { hints: hint.into_iter().collect(), ..Problem::new(what) }
    }

    /// Returns the message with the provider and HTTP status added, because provider messages often lack context.
    pub fn with_provider(&self, provider: &str) -> String {
        let Some(status) = self.status else { return self.text().to_owned() };
        let did = match self.kind {
            FailureKind::Authentication => "rejected the API key",
            FailureKind::RateLimited => "rate-limited the request",
            FailureKind::Overloaded if matches!(status, 503 | 529) => "is overloaded",
            FailureKind::Overloaded | FailureKind::Network | FailureKind::Timeout => "failed",
            _ => "rejected the request",
        };
        format!("{provider} {did} ({status}): {}", self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_name_the_provider_and_status_and_network_failures_do_not() {
        for (kind, status, expected) in [
            (FailureKind::Authentication, Some(401), "acme rejected the API key (401): no"),
            (FailureKind::RateLimited, Some(429), "acme rate-limited the request (429): no"),
            (FailureKind::Overloaded, Some(529), "acme is overloaded (529): no"),
            (FailureKind::Overloaded, Some(500), "acme failed (500): no"),
            (FailureKind::InvalidRequest, Some(400), "acme rejected the request (400): no"),
            (FailureKind::Network, None, "no"),
        ] {
            let failure = Failure { status, ..Failure::new(kind, "no", "") };
            assert_eq!(failure.with_provider("acme"), expected);
        }
    }

    #[test]
    fn machine_readable_codes_are_omitted_from_user_errors() {
        let failure = Failure::new(FailureKind::BudgetExceeded, "LLM_BUDGET_EXCEEDED: the session used $5.00", "raise it");
        assert_eq!(failure.problem().text(), "error: the session used $5.00\nhint: raise it");
        assert_eq!(Failure::new(FailureKind::Network, "no route: x", "").problem().text(), "error: no route: x");
    }

    #[test]
    fn failures_of_older_versions_have_no_remedy_and_remedies_serialize_as_data() {
        let old = r#"{"kind":"budget_exceeded","message":"m","hint":"h","retryable":false}"#;
        let mut failure: Failure = serde_json::from_str(old).unwrap();
        assert_eq!(failure.remedy, None);
        failure.remedy = Some(Remedy::RaiseBudget { scope: BudgetScope::Task, unit: BudgetUnit::Steps, limit: 20.0 });
        let remedy = &serde_json::to_value(&failure).unwrap()["remedy"];
        assert_eq!(remedy, &serde_json::json!({"action": "raise_budget", "scope": "task", "unit": "steps", "limit": 20.0}));
    }
}
