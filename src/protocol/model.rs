//! Model information: limits, capabilities and prices.

use super::Usage;
use serde::{Deserialize, Serialize};

const MILLION: f64 = 1_000_000.0;

/// A model at its provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelFacts {
    /// `anthropic/claude-sonnet-5`.
    pub name: String,
    /// In tokens, all of a request and its answer.
    pub context_window: u64,
    /// In tokens; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Whether it can be shown images.
    #[serde(default)]
    pub images: bool,
    /// Whether it can be told how hard to think.
    #[serde(default)]
    pub reasoning: bool,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// With the names that the catalogue has for them.
    #[serde(alias = "cache_read")]
    pub cache_read: f64,
    #[serde(alias = "cache_write")]
    pub cache_write: f64,
}

impl Price {
    /// Dollars for this usage.
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
    /// A model of the tests.
    #[cfg(test)]
    pub fn of_test(name: &str, context_window: u64, price: Option<Price>) -> Self {
        Self { name: name.to_owned(), context_window, max_output_tokens: None, price, images: false, reasoning: false }
    }

    /// Dollars for this usage; `None` when the price is unknown.
    pub fn cost_usd(&self, usage: &Usage) -> Option<f64> {
        self.price.map(|price| price.cost_usd(usage))
    }
}

/// How hard a model is to think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all, where it can be told so.
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

/// A model that can be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedModel {
    #[serde(flatten)]
    pub facts: ModelFacts,
    /// Why it cannot be used now: `set ANTHROPIC_API_KEY or aye auth login anthropic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Where all it lacks is a key: whose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_of: Option<String>,
    /// Who says that it is there: `catalogue`, `config.toml`, `asked at http://localhost:11434/v1`.
    pub source: String,
}
