//! Determines which models the policy allows, and which of them is used by default.

use super::policy_layers::Policy;
use crate::policy::Layer;
use std::sync::Arc;

/// Patterns that match every model.
const ANY: [&str; 2] = ["*", "*/*"];

/// The `allowed_models` lists of all policy layers.
#[derive(Clone, Default)]
pub(crate) struct AllowedModels {
    /// Policy layers that set `allowed_models`.
    layers: Arc<[Layer]>,
}

impl AllowedModels {
    pub(crate) fn from_policy(policy: &Policy) -> Self {
        Self { layers: policy.layers.iter().filter(|layer| layer.bundle.llm.allowed_models.is_some()).cloned().collect() }
    }

    /// Returns the name of the rule that forbids a model, or `None` if the model is allowed.
    pub(crate) fn forbidding_rule(&self, model: &str) -> Option<String> {
        let layer = self.layers.iter().find(|layer| !layer.bundle.llm.allows(model))?;
        Some(layer.scope.rule(layer.bundle.llm.models_line))
    }

    /// Returns the patterns of all policy layers, in order, or `None` if every model is allowed.
    pub(crate) fn patterns(&self) -> Option<Vec<&str>> {
        let restricts = |layer: &&Layer| {
            let listed = layer.bundle.llm.allowed_models.iter().flatten();
            !listed.clone().any(|pattern| ANY.contains(&pattern.as_str()))
        };
        let mut restricting = self.layers.iter().filter(restricts).peekable();
        restricting.peek()?;
        Some(restricting.flat_map(|layer| layer.bundle.llm.allowed_models.iter().flatten()).map(String::as_str).collect())
    }
}
