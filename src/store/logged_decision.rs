//! Entry of the decision log.

use serde::Serialize;

/// Logged verdict that allowed or refused an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoggedDecision {
    pub time: jiff::Timestamp,
    /// Session of the decision; absent for `aye tool call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub workspace: String,
    pub tool_name: String,
    /// One-line summary of the action: `$ cargo test`.
    pub summary: String,
    /// Verdict: `allow` or `deny`.
    pub verdict: String,
    /// Rule or user that decided: `user:31`, `you`, `auto mode`.
    pub by: String,
    /// Reason for a refusal, or the changes that hooks made to an allowed call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub mode: String,
}
