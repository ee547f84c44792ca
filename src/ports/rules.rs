//! Rule storage for "always allow".

use super::BoxFuture;
use crate::policy::Layer;
use crate::protocol::{GrantOption, GrantRule, GrantScope, ListedGrant, RulePlace};
use jiff::Timestamp;

/// Rules of a file after one was added or removed.
#[derive(Debug, Clone)]
pub(crate) struct SavedRules {
    /// Rule names, as in verdicts: `mine-here:14`.
    pub names: Vec<String>,
    /// File in its new state; absent if it no longer exists.
    pub layer: Option<Layer>,
}

/// Policy files of the user.
pub(crate) trait Rules: Send + Sync {
    /// Returns the locations of an offer's rules, for display. Changes nothing.
    fn rule_places(&self, offer: &GrantOption) -> Vec<RulePlace>;
    /// Saves rules atomically in the file of a scope.
    fn save(
        &self,
        rules: Vec<GrantRule>,
        scope: GrantScope,
        until: Option<Timestamp>,
    ) -> BoxFuture<'_, Result<SavedRules, String>>;
    /// Removes rules.
    fn remove(&self, rules: Vec<GrantRule>, scope: GrantScope) -> BoxFuture<'_, Result<SavedRules, String>>;
    /// Lists the saved rules for this project.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ListedGrant>, String>>;
    /// Returns the last `most` judged commands, each once and complete.
    fn recent_commands(&self, most: usize) -> BoxFuture<'_, Result<Vec<String>, String>>;
}
