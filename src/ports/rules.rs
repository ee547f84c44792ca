//! Storage for "always allow" rules.

use super::BoxFuture;
use crate::policy::Layer;
use crate::protocol::{GrantOption, GrantRule, GrantScope, ListedGrant, RulePlace};
use jiff::Timestamp;

/// State of a rule file after a rule was added or removed.
#[derive(Debug, Clone)]
pub(crate) struct SavedRules {
    /// Rule names as shown in verdicts, such as `mine-here:14`.
    pub names: Vec<String>,
    /// New policy layer read from the file; `None` if the file no longer exists.
    pub layer: Option<Layer>,
}

/// Access to the user's policy files.
pub(crate) trait Rules: Send + Sync {
    /// Returns where an offer's rules would be saved, for display. Does not change any file.
    fn rule_places(&self, offer: &GrantOption) -> Vec<RulePlace>;
    /// Atomically adds rules to the file for the given scope.
    fn save(
        &self,
        rules: Vec<GrantRule>,
        scope: GrantScope,
        until: Option<Timestamp>,
    ) -> BoxFuture<'_, Result<SavedRules, String>>;
    /// Removes rules from the file for the given scope.
    fn remove(&self, rules: Vec<GrantRule>, scope: GrantScope) -> BoxFuture<'_, Result<SavedRules, String>>;
    /// Lists the rules saved for this project.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ListedGrant>, String>>;
    /// Returns the last `most` commands judged by the policy, untruncated and without duplicates.
    fn recent_commands(&self, most: usize) -> BoxFuture<'_, Result<Vec<String>, String>>;
}
