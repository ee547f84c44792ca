//! Rule storage for "always allow".

use super::BoxFuture;
use crate::policy::Layer;
use crate::protocol::{GrantRule, GrantScope, Offer, RulePlace};
use jiff::Timestamp;

/// The rules of a file after one was put in or taken out.
#[derive(Debug, Clone)]
pub struct Saved {
    /// What verdicts call the rules: `mine-here:14`.
    pub names: Vec<String>,
    /// The file as it is now; absent where there is none any more.
    pub layer: Option<Layer>,
}

/// The person's rule files.
pub trait Rules: Send + Sync {
    /// Where the rules of an offer would stand, for the person to see. Changes nothing.
    fn places(&self, offer: &Offer) -> Vec<RulePlace>;
    /// Puts rules into the file of a scope; all of them or none.
    fn save(&self, rules: Vec<GrantRule>, scope: GrantScope, until: Option<Timestamp>) -> BoxFuture<'_, Result<Saved, String>>;
    /// Takes them out again.
    fn remove(&self, rules: Vec<GrantRule>, scope: GrantScope) -> BoxFuture<'_, Result<Saved, String>>;
    /// All that is kept for this place, a line each.
    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, String>>;
    /// The last commands that were decided about, at most so many, each once and whole.
    fn recent_commands(&self, most: usize) -> BoxFuture<'_, Result<Vec<String>, String>>;
}
