//! Entries of the decision log.

use serde::Serialize;

/// Logged decision to allow or deny an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoggedDecision {
    pub time: jiff::Timestamp,
    /// Session in which the decision was made. Absent for calls made with `aye tool call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    pub workspace: String,
    pub tool_name: String,
    /// One-line summary of the action, such as `$ cargo test`.
    pub summary: String,
    /// `allow` or `deny`.
    pub verdict: String,
    /// The rule or user that made the decision, such as `user:31`, `you` or `auto mode`.
    pub by: String,
    /// Reason for a denial, or the changes that hooks made to an allowed call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub mode: String,
}
