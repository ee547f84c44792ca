//! Rules saved by the user, and the results of changing the policy files.

use crate::ports::SavedRules;
use crate::protocol::{ApprovalId, GrantRule, GrantScope, ListedGrant};
use std::path::PathBuf;

/// Rule saved during this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleGrant {
    pub rules: Vec<GrantRule>,
    pub scope: GrantScope,
    /// Rule names as shown in verdicts.
    pub names: Vec<String>,
    /// Working directory of the command that was approved.
    pub directory: Option<PathBuf>,
}

/// Result of reading or changing the policy files.
#[derive(Debug)]
pub(crate) enum RuleFileResult {
    Saved(RuleGrant, Result<SavedRules, String>),
    Removed(RuleGrant, Result<SavedRules, String>),
    Listed(Result<Vec<ListedGrant>, String>),
    /// Recent commands, to be compared with a rule that an approval offers.
    Recent {
        approval_id: ApprovalId,
        offer: usize,
        commands: Result<Vec<String>, String>,
    },
}

impl RuleFileResult {
    /// Returns whether the change affects the directories that commands can access.
    pub(crate) fn changes_visible_paths(&self) -> bool {
        match self {
            Self::Saved(grant, Ok(_)) | Self::Removed(grant, Ok(_)) => {
                grant.rules.iter().any(|rule| matches!(rule, GrantRule::Readable { .. }))
            }
            Self::Saved(_, Err(_)) | Self::Removed(_, Err(_)) | Self::Listed(_) | Self::Recent { .. } => false,
        }
    }
}
