//! Usage limits for a session or a request, and the policy layer that sets each limit.

use super::layer_stack::EnforcerLayers;
use crate::policy::bundle::ModelLimits;

/// The lowest limit that any policy layer sets.
#[derive(Debug, Clone, PartialEq)]
pub struct LowestLimit {
    pub limit: f64,
    /// Key that sets the limit.
    pub key: &'static str,
    /// File and line that set the limit, or the policy layer if it has no file.
    pub place: String,
}

impl EnforcerLayers {
    pub(crate) fn most_session_tokens(&self) -> Option<LowestLimit> {
        self.lowest_limit("max_session_tokens", |llm| Some((llm.max_session_tokens? as f64, llm.tokens_line)))
    }

    /// Returns the lowest limit on input tokens per request.
    pub(crate) fn most_input_tokens(&self) -> Option<LowestLimit> {
        self.lowest_limit("max_input_tokens", |llm| Some((llm.max_input_tokens? as f64, llm.input_line)))
    }

    pub(crate) fn most_session_cost(&self) -> Option<LowestLimit> {
        self.lowest_limit("max_session_cost_usd", |llm| Some((llm.max_session_cost_usd?, llm.cost_line)))
    }

    fn lowest_limit(&self, key: &'static str, limit: impl Fn(&ModelLimits) -> Option<(f64, usize)>) -> Option<LowestLimit> {
        let said = self.compiled_layers().iter().filter_map(|layer| Some((layer, limit(&layer.bundle.llm)?)));
        let (layer, (limit, line)) = said.min_by(|(_, one), (_, other)| one.0.total_cmp(&other.0))?;
        let place = match &layer.file {
            Some(file) => format!("{}:{line}", file.display()),
            None => layer.scope.rule(line),
        };
        Some(LowestLimit { limit, key, place })
    }
}
