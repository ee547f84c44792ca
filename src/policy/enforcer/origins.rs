//! Finds the origins of the rules that determined a verdict, which an approval prompt quotes.

use super::layer_stack::EnforcerLayers;
use crate::policy::layer::RuleId;
use crate::protocol::{CommandPart, RuleOrigin};

/// Maximum number of rules quoted in an approval prompt.
const MAX: usize = 12;

impl EnforcerLayers {
    /// Returns the origins of the rule that determined the verdict and of the rules for each part, without duplicates.
    /// Rules that are not defined in a file are omitted.
    pub(crate) fn origins(&self, rule: &str, parts: &[CommandPart]) -> Vec<RuleOrigin> {
        let mut found: Vec<RuleOrigin> = Vec::new();
        for rule in std::iter::once(rule).chain(parts.iter().map(|part| part.rule.as_str())) {
            if found.len() < MAX && !found.iter().any(|known| known.rule == rule) {
                found.extend(self.origin(rule));
            }
        }
        found
    }

    fn origin(&self, rule: &str) -> Option<RuleOrigin> {
        let RuleId { scope, line } = RuleId::from_name(rule)?;
        let line = line?;
        let layer = self.source().iter().find(|layer| layer.scope == scope)?;
        let place = format!("{}:{line}", layer.file.as_ref()?.display());
        Some(RuleOrigin { rule: rule.to_owned(), place, first: line, source: layer.bundle.quoted(line) })
    }
}
