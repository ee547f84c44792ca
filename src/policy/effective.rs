//! Effective settings, with the value, origin and effect of each key.

use super::layer::CompiledLayer;
use serde::Serialize;
use std::path::PathBuf;

/// A key that is set in one policy layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveSetting {
    /// Section that contains the key, such as `capabilities."File.Read"` or `llm`; empty for top-level keys.
    pub section: String,
    pub key: String,
    /// Value in TOML syntax, on a single line.
    pub value: String,
    /// Origin as shown in verdicts, such as `user:31` or `built-in`.
    pub origin: String,
    pub line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Note about the key's effect, such as `tightens`, `ignored: would widen the policy` or `overridden by managed:4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Values of each key, ordered from strictest to laxest.
const STRICTNESS: &[(&str, &[&str])] = &[
    ("sandbox", &["\"read-only\"", "\"workspace-write\"", "\"off\""]),
    ("network", &["\"deny\"", "\"allow\""]),
    ("preview", &["\"always\"", "\"offer\"", "\"never\""]),
    ("approve", &["\"command\"", "\"effects\""]),
    ("unsandboxed", &["\"deny\"", "\"ask\""]),
    ("build_output", &["\"layer\"", "\"direct\""]),
    ("cache", &["\"private\"", "\"inherit\""]),
    ("guard", &["\"strict\"", "\"normal\""]),
    ("requires_approval", &["true", "false"]),
];

/// Returns all entries, ordered by section and key, and from the strongest policy layer to the weakest.
pub(crate) fn entries(layers: &[CompiledLayer]) -> Vec<EffectiveSetting> {
    let mut all: Vec<(&CompiledLayer, EffectiveSetting)> = layers.iter().flat_map(layer_entries).collect();
    all.sort_by(|(_, one), (_, other)| (&one.section, &one.key).cmp(&(&other.section, &other.key)));
    let notes: Vec<Option<String>> = all.iter().map(|(layer, entry)| entry_note(layer, entry, &all)).collect();
    all.into_iter().zip(notes).map(|((_, entry), note)| EffectiveSetting { note, ..entry }).collect()
}

fn layer_entries(layer: &CompiledLayer) -> impl Iterator<Item = (&CompiledLayer, EffectiveSetting)> {
    layer.bundle.stated.iter().map(move |stated| {
        let entry = EffectiveSetting {
            section: stated.section.clone(),
            key: stated.key.clone(),
            value: stated.value.clone(),
            origin: layer.scope.rule(stated.line),
            line: stated.line,
            file: layer.file.clone(),
            note: None,
        };
        (layer, entry)
    })
}

fn entry_note(layer: &CompiledLayer, entry: &EffectiveSetting, all: &[(&CompiledLayer, EffectiveSetting)]) -> Option<String> {
    if !layer.scope.grants() && layer.bundle.widens().iter().any(|(line, _)| *line == entry.line) && widening(layer, entry) {
        return Some("ignored: would widen the policy".to_owned());
    }
    if !layer.scope.grants() && entry.key == "rules" && entry.value.contains("args = \"any\"") {
        return Some("`args` ignored: would widen the policy".to_owned());
    }
    if let Some(rank) = strictness(entry) {
        let same = all.iter().filter(|(_, other)| (&other.section, &other.key) == (&entry.section, &entry.key));
        let stricter = same.filter_map(|(_, other)| Some((strictness(other)?, &other.origin)));
        let strictest = stricter.min_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((least, origin)) = strictest
            && least < rank
        {
            return Some(format!("overridden by {origin}"));
        }
    }
    (layer.scope.only_tightens() && !["schema_version", "bundle_version"].contains(&entry.key.as_str()))
        .then(|| "tightens".to_owned())
}

/// Returns whether the entry as a whole would loosen the policy. In a rule with `args = "any"`, only that key would.
fn widening(layer: &CompiledLayer, entry: &EffectiveSetting) -> bool {
    entry.key != "rules" || layer.scope.only_tightens()
}

/// Returns how strict a value is, for keys of which the strictest value wins. Lower numbers are stricter.
fn strictness(entry: &EffectiveSetting) -> Option<f64> {
    if let Some((_, order)) = STRICTNESS.iter().find(|(key, _)| *key == entry.key) {
        return order.iter().position(|value| *value == entry.value).map(|at| at as f64);
    }
    if entry.key == "expires_at" && entry.section.is_empty() {
        return Some(entry.value.parse::<jiff::Timestamp>().ok()?.as_second() as f64);
    }
    entry.key.starts_with("max_").then(|| entry.value.replace('_', "").parse().ok()).flatten()
}
