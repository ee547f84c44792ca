//! Lists about the session that the user requested.

use super::diagnostics::{LanguageServerStatus, language_server_list};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// List about the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "subject")]
pub enum RequestedList {
    /// Commands that ran without approval since aye started, oldest first.
    UnaskedRuns {
        runs: Vec<ListedRun>,
        /// Number of earlier commands that are not listed.
        earlier: u64,
    },
    /// Rules that the user saved with "always allow", and actions of an approved plan.
    Grants { grants: Vec<ListedGrant> },
    /// Language servers with their state.
    LanguageServers { servers: Vec<LanguageServerStatus> },
}

/// Command that ran without approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedRun {
    /// Command line, as on its card: `$ cargo test`.
    pub command: String,
    /// Outcome: `exit 0`, or `running`.
    pub outcome: String,
    /// Reason why no approval was needed, with the applied changes.
    pub reason: String,
}

/// Saved rule, or an action that stays allowed for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedGrant {
    /// Name of a saved rule, or the time until which the action is allowed: `until aye quits`.
    pub name: String,
    /// Allowed calls, as text.
    pub rule: String,
    /// Times of saving, use and expiry; empty for an action that is not saved as a rule.
    pub times: String,
}

impl RequestedList {
    /// Returns the list as text, one line per row.
    pub fn to_text(&self) -> String {
        match self {
            Self::UnaskedRuns { runs, .. } if runs.is_empty() => {
                "no command has run without approval since aye started".to_owned()
            }
            Self::UnaskedRuns { runs, earlier } => {
                let mut lines = "commands that ran without approval since aye started, oldest first:".to_owned();
                if *earlier > 0 {
                    let _ = write!(lines, "\n  {earlier} earlier ones");
                }
                for ListedRun { command, outcome, reason } in runs {
                    let _ = write!(lines, "\n  {command}  {outcome}; {reason}");
                }
                lines
            }
            Self::Grants { grants } if grants.is_empty() => "no rule is saved for this project".to_owned(),
            Self::Grants { grants } => grants.iter().map(ListedGrant::to_line).collect::<Vec<_>>().join("\n"),
            Self::LanguageServers { servers } => language_server_list(servers),
        }
    }

    /// Returns whether the list has no rows.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::UnaskedRuns { runs, .. } => runs.is_empty(),
            Self::Grants { grants } => grants.is_empty(),
            Self::LanguageServers { servers } => servers.is_empty(),
        }
    }
}

impl ListedGrant {
    fn to_line(&self) -> String {
        let times = if self.times.is_empty() { String::new() } else { format!("  {}", self.times) };
        format!("{}  {}{times}", self.name, self.rule)
    }
}
