//! Rule storage for "always allow".

use super::BoxFuture;
use crate::policy::Layer;
use crate::protocol::{GrantOption, GrantRule, GrantScope, ListedGrant, RulePlace};
use jiff::Timestamp;

/// Rules of a file after a rule was added or removed.
#[derive(Debug, Clone)]
pub(crate) struct SavedRules {
    /// Rule names, as in verdicts: `mine-here:14`.
    pub names: Vec<String>,
    /// New state of the file; absent if it no longer exists.
    pub layer: Option<Layer>,
}

/// The user's policy files.
pub(crate) trait Rules: Send + Sync {
    /// Returns the locations of an offer's rules, for display. Changes no file.
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
    /// Returns the last `most` judged commands in full and without duplicates.
    fn recent_commands(&self, most: usize) -> BoxFuture<'_, Result<Vec<String>, String>>;
}
