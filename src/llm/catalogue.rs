//! What each well-known model can take and costs.

use crate::protocol::{ModelFacts, Price};
use serde::Deserialize;
use std::sync::OnceLock;

const MODELS: &str = include_str!("../../assets/models.toml");
/// Assumed of a model that nobody knows.
const UNKNOWN_WINDOW: u64 = 200_000;

/// A server of this machine costs nothing, unless the list says that it does.
const LOCAL: &str = "local/";
const NOTHING: Price = Price { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };

/// A model as the list has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    /// `anthropic/claude-sonnet-5`; dated names of it begin so.
    name: String,
    context_window: u64,
    max_output_tokens: Option<u64>,
    price: Option<Price>,
    #[serde(default)]
    images: bool,
    #[serde(default)]
    reasoning: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    /// Parts of the names of models that take images, for those that are not listed.
    image_families: Vec<String>,
    models: Vec<Card>,
}

/// What is known of `provider/name`; of a model that is not listed, the assumed window and no price.
pub fn facts(full_name: &str) -> ModelFacts {
    let Catalogue { image_families, models } = catalogue();
    if let Some(card) = models.iter().find(|card| is_named(&card.name, full_name)) {
        return ModelFacts {
            name: full_name.to_owned(),
            context_window: card.context_window,
            max_output_tokens: card.max_output_tokens,
            price: card.price,
            images: card.images,
            reasoning: card.reasoning,
        };
    }
    let name = full_name.to_ascii_lowercase();
    ModelFacts {
        name: full_name.to_owned(),
        context_window: UNKNOWN_WINDOW,
        max_output_tokens: None,
        price: name.starts_with(LOCAL).then_some(NOTHING),
        images: image_families.iter().any(|family| name.contains(family)),
        reasoning: false,
    }
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
