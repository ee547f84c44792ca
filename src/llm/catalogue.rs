//! What each well-known model can take and costs.

use crate::protocol::Usage;
use serde::Deserialize;
use std::sync::OnceLock;

const MODELS: &str = include_str!("../../assets/models.toml");
/// Assumed of a model that nobody knows.
const UNKNOWN_WINDOW: u64 = 200_000;
const MILLION: f64 = 1_000_000.0;

/// A model's limits and price.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCard {
    /// `anthropic/claude-sonnet-5`; dated names of it begin so.
    pub name: String,
    /// Tokens.
    pub context_window: u64,
    /// Tokens; absent when unknown.
    pub max_output_tokens: Option<u64>,
    pub price: Option<Price>,
    /// Whether it can be shown images.
    #[serde(default)]
    pub images: bool,
}

/// Dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    /// Parts of the names of models that take images, for those that are not listed.
    image_families: Vec<String>,
    models: Vec<ModelCard>,
}

impl ModelCard {
    /// Dollars for this usage.
    pub fn cost_usd(&self, usage: &Usage) -> Option<f64> {
        let price = self.price?;
        let fresh = usage.input_tokens.saturating_sub(usage.cache_read_tokens + usage.cache_write_tokens);
        let sum = fresh as f64 * price.input
            + usage.cache_read_tokens as f64 * price.cache_read
            + usage.cache_write_tokens as f64 * price.cache_write
            + usage.output_tokens as f64 * price.output;
        Some(sum / MILLION)
    }
}

/// The card of `provider/name`; of a model that is not listed, one with the assumed window and no price.
pub fn card(full_name: &str) -> ModelCard {
    let Catalogue { image_families, models } = catalogue();
    models.iter().find(|card| is_named(&card.name, full_name)).cloned().unwrap_or_else(|| {
        let name = full_name.to_ascii_lowercase();
        ModelCard {
            name: full_name.to_owned(),
            context_window: UNKNOWN_WINDOW,
            max_output_tokens: None,
            price: None,
            images: image_families.iter().any(|family| name.contains(family)),
        }
    })
}

fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    // A test reads the built-in list, so it does parse.
    CATALOGUE.get_or_init(|| toml::from_str(MODELS).unwrap_or_default())
}

/// `claude-sonnet-5` is also called `claude-sonnet-5-20260630`; `openai-chat` and `openai` name the same models.
fn is_named(listed: &str, asked: &str) -> bool {
    let asked = asked.strip_prefix("openai-chat/").map_or(asked, |_| &asked["openai-chat/".len()..]);
    let listed_name = listed.strip_prefix("openai/").filter(|_| !asked.starts_with("openai/")).unwrap_or(listed);
    asked.strip_prefix(listed_name).is_some_and(|rest| rest.is_empty() || is_date(rest))
}

fn is_date(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|date| date.len() >= 8 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

#[cfg(test)]
mod tests;
