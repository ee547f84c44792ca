//! Lists every key in a bundle with its value and line, for `aye policy explain`.

use super::reader::BundleTable;
use toml::de::{DeTable, DeValue};

/// Tables whose children are listed as separate sections.
const GROUPS: &[&str] = &["capabilities", "approval_rules"];

/// A key and its value, as written in the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleEntry {
    /// Section that contains the key, such as `capabilities."File.Read"`; empty for top-level keys.
    pub section: String,
    pub key: String,
    /// Value in TOML syntax, on a single line.
    pub value: String,
    pub line: usize,
}

/// Returns every entry in a bundle, sorted by name.
pub(crate) fn bundle_entries(root: &BundleTable<'_>) -> Vec<BundleEntry> {
    let mut all = Vec::new();
    section_entries(root.table, "", &|span| root.source.line(span), &mut all);
    all
}

fn section_entries(
    table: &DeTable<'_>,
    section: &str,
    line: &impl Fn(&std::ops::Range<usize>) -> usize,
    all: &mut Vec<BundleEntry>,
) {
    for (key, value) in table {
        let name = toml_key(key.get_ref());
        let mut state = |value: String, span| {
            all.push(BundleEntry { section: section.to_owned(), key: name.clone(), value, line: line(&span) });
        };
        match value.get_ref() {
            DeValue::Table(inner) if section.is_empty() => section_entries(inner, &name, line, all),
            DeValue::Table(inner) if GROUPS.contains(&section) => section_entries(inner, &format!("{section}.{name}"), line, all),
            DeValue::Array(items) if !items.is_empty() && items.iter().all(|item| item.get_ref().is_table()) => {
                items.iter().for_each(|item| state(to_toml(item.get_ref()), item.span()));
            }
            other => state(to_toml(other), value.span()),
        }
    }
}

/// Formats a value in TOML syntax on a single line.
fn to_toml(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => toml::Value::String(text.to_string()).to_string(),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or_else(|_| number.as_str().to_owned(), |n| n.to_string())
        }
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(switch) => switch.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            format!("[{}]", items.iter().map(|item| to_toml(item.get_ref())).collect::<Vec<_>>().join(", "))
        }
        DeValue::Table(table) if table.is_empty() => "{}".to_owned(),
        DeValue::Table(table) => {
            let one = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
                format!("{} = {}", toml_key(key.get_ref()), to_toml(value.get_ref()))
            };
            format!("{{ {} }}", table.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Formats a key in TOML syntax, quoting it if necessary.
fn toml_key(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if plain { key.to_owned() } else { toml::Value::String(key.to_owned()).to_string() }
}
