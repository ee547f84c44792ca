//! Model information: limits, capabilities and prices.

use super::Usage;
use serde::{Deserialize, Serialize};

const MILLION: f64 = 1_000_000.0;

/// Model of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFacts {
    /// Name: `anthropic/claude-sonnet-5`.
    pub name: String,
    /// Context window in tokens, for a request and its response.
    pub context_window: u64,
    /// Maximum output in tokens; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether the model accepts images.
    #[serde(default)]
    pub images: bool,
    /// Whether the model has a configurable reasoning effort.
    #[serde(default)]
    pub reasoning: bool,
}

/// Use of a model by a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelUse {
    pub model: ModelFacts,
    pub usage: Usage,
    /// Price in US dollars besides that of the tokens, such as for each search.
    pub fee_usd: f64,
}

/// Price in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Also accepted as `cache_read`, the name in the catalogue.
    #[serde(alias = "cache_read")]
    pub cache_read: f64,
    #[serde(alias = "cache_write")]
    pub cache_write: f64,
}

impl Price {
    /// Returns the cost of this usage in US dollars.
    pub fn cost_usd(&self, usage: &Usage) -> f64 {
        let fresh = usage.input_tokens.saturating_sub(usage.cache_read_tokens + usage.cache_write_tokens);
        let sum = fresh as f64 * self.input
            + usage.cache_read_tokens as f64 * self.cache_read
            + usage.cache_write_tokens as f64 * self.cache_write
            + usage.output_tokens as f64 * self.output;
        sum / MILLION
    }
}

impl ModelFacts {
    /// Returns a model for tests.
    #[cfg(test)]
    pub fn of_test(name: &str, context_window: u64, price: Option<Price>) -> Self {
        Self { name: name.to_owned(), context_window, max_output_tokens: None, price, images: false, reasoning: false }
    }

    /// Returns the cost of this usage in US dollars; `None` if the price is unknown.
    pub fn cost_usd(&self, usage: &Usage) -> Option<f64> {
        self.price.map(|price| price.cost_usd(usage))
    }
}

/// Reasoning effort of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No reasoning, if the model supports that.
    Off,
    Low,
    Medium,
    High,
}

impl Effort {
    pub const ALL: [Self; 4] = [Self::Off, Self::Low, Self::Medium, Self::High];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == name)
    }
}

/// Model in the list of choices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedModel {
    #[serde(flatten)]
    pub facts: ModelFacts,
    /// Reason why it cannot be used now: `set ANTHROPIC_API_KEY or aye auth login anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Provider whose API key is the only thing missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_of: Option<String>,
    /// Source of the entry: `catalogue`, `config.toml`, `listed by http://localhost:11434/v1`.
    pub source: String,
}
