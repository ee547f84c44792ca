//! Serialization of a catalogue as a TOML document.

use super::entry::{Cards, CatalogueEntry};
use toml::{Table, Value};

/// Formats a list as a TOML document.
pub(super) fn write(cards: &Cards) -> String {
    let mut top = Table::new();
    let text = |value: &dyn std::fmt::Display| Value::String(value.to_string());
    top.extend(cards.date.map(|date| ("date".to_owned(), text(&date))));
    top.extend(cards.origin.as_ref().map(|origin| ("origin".to_owned(), text(origin))));
    let families = |families: &[String]| Value::Array(families.iter().map(|family| text(family)).collect());
    for (name, list) in [("image_families", &cards.image_families), ("reasoning_families", &cards.reasoning_families)] {
        if !list.is_empty() {
            top.insert(name.to_owned(), families(list));
        }
    }
    top.insert("models".to_owned(), Value::Array(cards.models.iter().map(|card| Value::Table(entry(card))).collect()));
    top.to_string()
}

fn entry(card: &CatalogueEntry) -> Table {
    let number = |count: u64| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    let text = Value::String;
    let price = card.price.map(|price| {
        let amounts = [
            ("input", price.input),
            ("output", price.output),
            ("cache_read", price.cache_read),
            ("cache_write", price.cache_write),
        ];
        Value::Table(amounts.map(|(name, amount)| (name.to_owned(), Value::Float(amount))).into_iter().collect())
    });
    let efforts = card.efforts.as_ref().map(|efforts| efforts.iter().map(|effort| text(effort.as_str().to_owned())).collect());
    let fields = [
        ("name", Some(text(card.name.clone()))),
        ("context_window", card.context_window.map(number)),
        ("max_output_tokens", card.max_output_tokens.map(number)),
        ("price", price),
        ("images", card.images.map(Value::Boolean)),
        ("tools", card.tools.map(Value::Boolean)),
        ("reasoning", card.reasoning.map(Value::Boolean)),
        ("efforts", efforts.map(Value::Array)),
        ("source", card.source.clone().map(text)),
        ("verified", card.verified.map(|date| text(date.to_string()))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
