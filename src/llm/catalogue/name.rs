//! Matching of the different names under which the same model is known.

/// Returns the vendor behind a provider name. `openai-chat` and `openai`, for example, are two APIs of the same vendor.
pub(crate) fn seller(provider: &str) -> &str {
    if provider == "openai-chat" { "openai" } else { provider }
}

/// Returns whether a listed name refers to the requested model. `anthropic/claude-sonnet-5` also matches
/// `anthropic/claude-sonnet-5-20260630`.
pub(crate) fn is_same_model(listed: &str, asked: &str) -> bool {
    let halves = (listed.split_once('/'), asked.split_once('/'));
    let (Some((listed_at, listed)), Some((asked_at, asked))) = halves else { return false };
    seller(listed_at) == seller(asked_at) && asked.strip_prefix(listed).is_some_and(|rest| rest.is_empty() || is_date(rest))
}

/// Removes the vendor-specific parts of a name, turning `openrouter/anthropic/claude-sonnet-4.5:beta` into
/// `claude-sonnet-4-5`, and `mine/us.anthropic.claude-sonnet-4-5-20250929-v1:0` into `claude-sonnet-4-5-20250929-v1`.
pub(crate) fn bare_name(full_name: &str) -> String {
    let last = full_name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let last = last.split([':', '@']).next().unwrap_or_default();
    let last = last.find(".claude-").map_or(last, |at| &last[at + 1..]);
    normalize(last)
}

/// Replaces dots with dashes, because providers use them interchangeably.
fn normalize(name: &str) -> String {
    name.to_ascii_lowercase().replace(['.', '_'], "-")
}

/// Returns whether a bare name is the listed name, possibly followed by `-v1` and by a date, `-latest` or `-preview`.
pub(crate) fn is_bare(listed: &str, asked: &str) -> bool {
    let rest = asked.strip_prefix(normalize(listed).as_str());
    let rest = rest.map(|rest| rest.strip_suffix("-v1").unwrap_or(rest));
    rest.is_some_and(|rest| rest.is_empty() || rest == "-latest" || rest == "-preview" || is_date(rest))
}

/// Returns whether a bare name refers to a size or variant of the listed open model.
pub(crate) fn is_variant_of(listed: &str, asked: &str) -> bool {
    asked.strip_prefix(normalize(listed).as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns whether the text is a date suffix, such as `-20260630` or `-2026-06-30`.
fn is_date(rest: &str) -> bool {
    let Some(date) = rest.strip_prefix('-') else { return false };
    let dashes: Vec<usize> = date.match_indices('-').map(|(at, _)| at).collect();
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    digits == 8 && (date.len() == 8 || (date.len() == 10 && dashes == [4, 7]))
}
