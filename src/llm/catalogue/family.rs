//! Families of models, by whose names other agents choose a model: `sonnet`, `opus`.

use super::name::bare_name;
use std::collections::BTreeMap;

/// Names of families. Their models are called `claude-FAMILY-VERSION` or, the older ones, `claude-VERSION-FAMILY`.
const FAMILIES: [&str; 4] = ["fable", "haiku", "opus", "sonnet"];
/// Maximum number of digits in a part of a version. Longer numbers are dates.
const VERSION_DIGITS: usize = 2;

/// Returns each provider's newest model of a family. `names` contains full names, PROVIDER/NAME.
pub(crate) fn newest_of_family<'a>(names: impl Iterator<Item = &'a str>, family: &str) -> Vec<&'a str> {
    let family = family.to_ascii_lowercase();
    if !FAMILIES.contains(&family.as_str()) {
        return Vec::new();
    }
    let mut newest: BTreeMap<&str, (Vec<u32>, &str)> = BTreeMap::new();
    for name in names {
        let Some(((provider, _), version)) = name.split_once('/').zip(version(name, &family)) else { continue };
        let best = newest.entry(provider).or_insert_with(|| (version.clone(), name));
        if version > best.0 {
            *best = (version, name);
        }
    }
    newest.into_values().map(|(_, name)| name).collect()
}

/// Returns the version of a model of this family. Returns `None` for variants, which have more words in their names.
fn version(full_name: &str, family: &str) -> Option<Vec<u32>> {
    let bare = bare_name(full_name);
    let mut parts: Vec<&str> = bare.split('-').collect();
    parts.retain(|part| *part != "claude" && *part != "v1" && *part != "latest");
    let at = parts.iter().position(|part| *part == family)?;
    parts.remove(at);
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !parts.iter().all(is_number) {
        return None;
    }
    Some(parts.iter().filter(|part| part.len() <= VERSION_DIGITS).filter_map(|part| part.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_model_of_a_family_has_the_highest_version() {
        let names = [
            "anthropic/claude-3-5-haiku",
            "anthropic/claude-haiku-4-5",
            "anthropic/claude-opus-4-8",
            "anthropic/claude-opus-5",
            "anthropic/claude-opus-5-5",
            "anthropic/claude-opus-6-fast",
            "anthropic/claude-sonnet-5-20260630",
            "anthropic/claude-sonnet-4-6",
            "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "openai/gpt-5.5",
        ];
        for (family, expected) in [
            ("haiku", &["anthropic/claude-haiku-4-5"][..]),
            ("Opus", &["anthropic/claude-opus-5-5"]),
            ("sonnet", &["anthropic/claude-sonnet-5-20260630", "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"]),
            ("fable", &[]),
            ("claude", &[]),
            ("gpt", &[]),
        ] {
            assert_eq!(newest_of_family(names.into_iter(), family), expected, "{family}");
        }
    }
}
