//! Origins of the deciding rules, to be quoted in an approval prompt.

use super::layer_stack::EnforcerLayers;
use crate::protocol::{CommandPart, RuleOrigin};

/// Maximum number of rules that one approval quotes.
const MAX: usize = 12;

impl EnforcerLayers {
    /// Returns the deciding rule and the rules of the parts, without duplicates, as far as they are in a file.
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
        let line: usize = rule.split_once(':')?.1.parse().ok()?;
        let layer = self.source().iter().find(|layer| layer.scope.rule(line) == rule)?;
        let place = format!("{}:{line}", layer.file.as_ref()?.display());
        Some(RuleOrigin { rule: rule.to_owned(), place, first: line, source: layer.bundle.quoted(line) })
    }
}
