//! Lists about a session, shown at the user's request.

use super::diagnostics::{LanguageServerStatus, language_server_list};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// List of runs, grants or language servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "subject")]
pub enum RequestedList {
    /// Commands run without approval since aye started, oldest first.
    UnaskedRuns {
        runs: Vec<ListedRun>,
        /// Number of earlier commands that are not included.
        earlier: u64,
    },
    /// Rules that the user saved with "always allow", and actions allowed by an approved plan.
    Grants { grants: Vec<ListedGrant> },
    /// Language servers and their status.
    LanguageServers { servers: Vec<LanguageServerStatus> },
}

/// Command that was run without approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedRun {
    /// Command line as displayed in the transcript: `$ cargo test`.
    pub command: String,
    /// Outcome, such as `exit 0` or `running`.
    pub outcome: String,
    /// Reason why no approval was needed, including any changes that were applied.
    pub reason: String,
}

/// Saved rule, or action that is allowed for a limited time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedGrant {
    /// Name of a saved rule or, for an action, how long it is allowed: `until aye quits`.
    pub name: String,
    /// Description of the calls that are allowed.
    pub rule: String,
    /// When the rule was saved, when it was last used, and when it expires. Empty for an action without a saved rule.
    pub times: String,
}

impl RequestedList {
    /// Formats the list as text, with one row per line.
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

    /// Returns whether the list is empty.
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
