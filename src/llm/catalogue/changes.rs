//! Differences between the catalogue in use and another list, formatted as one line per model.

use super::Catalogue;
use super::entry::CatalogueEntry;
use crate::protocol::{Effort, ModelFacts, Price};

/// Returns each model that would be changed or added, with a description of its changes, such as `input price 2 → 1`.
pub(super) fn changes<'a>(cards: &'a [CatalogueEntry], in_use: &Catalogue) -> Vec<(&'a str, String)> {
    let change = |card: &'a CatalogueEntry| {
        let before = in_use.facts(&card.name);
        let after = card.apply_to(before.clone());
        let words = if in_use.lists(&card.name) {
            differences(&before, &after)
        } else {
            Some(format!("new: {}", describe_facts(&after)))
        };
        words.map(|words| (card.name.as_str(), words))
    };
    cards.iter().filter_map(change).collect()
}

fn differences(before: &ModelFacts, after: &ModelFacts) -> Option<String> {
    let mut parts = Vec::new();
    let price =
        |facts: &ModelFacts, of: fn(&Price) -> f64| facts.price.map_or_else(|| "unknown".to_owned(), |price| amount(of(&price)));
    let mut compare = |name, of| add(&mut parts, name, &price(before, of), &price(after, of));
    compare("input price", |price| price.input);
    compare("output price", |price| price.output);
    compare("price of cached input", |price| price.cache_read);
    compare("price of cache writes", |price| price.cache_write);
    add(&mut parts, "window", &tokens(before.context_window), &tokens(after.context_window));
    let output = |facts: &ModelFacts| facts.max_output_tokens.map_or_else(|| "unknown".to_owned(), tokens);
    add(&mut parts, "longest response", &output(before), &output(after));
    add(&mut parts, "images", yes_or_no(before.images), yes_or_no(after.images));
    let tools = |facts: &ModelFacts| facts.tools.map_or("unknown", yes_or_no);
    add(&mut parts, "tools", tools(before), tools(after));
    let efforts = |facts: &ModelFacts| match facts.supported_efforts() {
        [] => "none".to_owned(),
        efforts => Effort::names(efforts),
    };
    add(&mut parts, "efforts", &efforts(before), &efforts(after));
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn add(parts: &mut Vec<String>, name: &str, before: &str, after: &str) {
    if before != after {
        parts.push(format!("{name} {before} → {after}"));
    }
}

fn describe_facts(facts: &ModelFacts) -> String {
    let price = facts.price.map_or_else(
        || "price unknown".to_owned(),
        |price| format!("${} in, ${} out per million tokens", amount(price.input), amount(price.output)),
    );
    format!("{} window, {price}", tokens(facts.context_window))
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn amount(dollars: f64) -> String {
    let text = format!("{dollars:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats a token count without rounding it: `200k`, `1.05M`.
fn tokens(count: u64) -> String {
    match count {
        0 => "0".to_owned(),
        _ if count.is_multiple_of(10_000) && count >= 1_000_000 => format!("{}M", amount(count as f64 / 1e6)),
        _ if count.is_multiple_of(1_000) => format!("{}k", count / 1_000),
        _ => count.to_string(),
    }
}
