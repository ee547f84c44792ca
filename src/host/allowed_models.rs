//! Models allowed by the policy, and the choice among them if nobody chose one.

use super::models::ModelCatalog;
use super::policy_layers::Policy;
use crate::config::{ModelChoice, NoModel};
use crate::llm::Catalogue;
use crate::policy::Layer;
use std::sync::Arc;

/// Patterns that match every model.
const ANY: [&str; 2] = ["*", "*/*"];

/// The `allowed_models` of all layers of the policy.
#[derive(Clone, Default)]
pub struct Allowed {
    /// The layers that set the key.
    layers: Arc<[Layer]>,
}

impl Allowed {
    pub fn by(policy: &Policy) -> Self {
        Self { layers: policy.layers.iter().filter(|layer| layer.bundle.llm.allowed_models.is_some()).cloned().collect() }
    }

    /// Returns the rule that forbids a model, if there is one.
    pub fn forbidden_by(&self, model: &str) -> Option<String> {
        let layer = self.layers.iter().find(|layer| !layer.bundle.llm.allows(model))?;
        Some(layer.scope.rule(layer.bundle.llm.models_line))
    }

    /// Returns the patterns of all layers, in order; `None` if any model is allowed.
    fn patterns(&self) -> Option<Vec<&str>> {
        let restricts = |layer: &&Layer| {
            let listed = layer.bundle.llm.allowed_models.iter().flatten();
            !listed.clone().any(|pattern| ANY.contains(&pattern.as_str()))
        };
        let mut restricting = self.layers.iter().filter(restricts).peekable();
        restricting.peek()?;
        Some(restricting.flat_map(|layer| layer.bundle.llm.allowed_models.iter().flatten()).map(String::as_str).collect())
    }
}

impl ModelCatalog {
    /// Returns the model that a run with this flag would use.
    pub fn would_use(&self, flag: Option<&str>) -> Result<ModelChoice, NoModel> {
        match flag {
            Some(_) => self.choice(flag),
            None => self.unasked(&self.catalogue()?),
        }
    }

    /// Returns the model to use if neither a flag nor a session names one: `[model] default`, else the first model with
    /// a key that the policy lists, else the first provider with a key.
    fn unasked(&self, catalogue: &Catalogue) -> Result<ModelChoice, NoModel> {
        let by_keys = || self.choice(None);
        if let Some(default) = self.default_model() {
            return match self.allowed().forbidden_by(default) {
                None => by_keys(),
                Some(rule) => Err(NoModel::Forbidden { message: forbidden_default(default, &rule) }),
            };
        }
        let Some(patterns) = self.allowed().patterns() else { return by_keys() };
        let mut lacks = None;
        for name in patterns.iter().flat_map(|pattern| self.named_by(pattern, catalogue)) {
            if self.allowed().forbidden_by(&name).is_some() {
                continue;
            }
            match self.choice(Some(&name)) {
                Ok(choice) => return Ok(choice),
                Err(error) => lacks = lacks.or(Some(error)),
            }
        }
        let listed = if patterns.is_empty() { "no model".to_owned() } else { format!("only {}", quoted(&patterns)) };
        let message = match lacks {
            Some(lacks) => format!("the policy allows {listed} (`allowed_models`), and none of these is usable: {lacks}"),
            None => format!("the policy allows {listed} (`allowed_models`), and no known model matches"),
        };
        Err(NoModel::NoKey { message })
    }

    /// Returns the models that an entry of `allowed_models` means: the name itself, or the listed models that match a
    /// pattern, by provider.
    fn named_by(&self, pattern: &str, catalogue: &Catalogue) -> Vec<String> {
        if !pattern.contains(['*', '?']) {
            return vec![pattern.to_owned()];
        }
        let matches = |name: &String| crate::policy::matches_model(pattern, name);
        self.providers().into_iter().flat_map(|provider| self.listed_of(&provider, catalogue)).filter(matches).collect()
    }
}

fn forbidden_default(default: &str, rule: &str) -> String {
    format!(
        "the policy does not allow the model `{default}`, which `[model] default` in config.toml names (rule: {rule})\nhint: choose another one with `-m PROVIDER/NAME`, change `[model] default`, or add the model to `allowed_models`"
    )
}

fn quoted(patterns: &[&str]) -> String {
    patterns.iter().map(|pattern| format!("`{pattern}`")).collect::<Vec<_>>().join(", ")
}
