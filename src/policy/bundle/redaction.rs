//! User-defined redactions (`[[redaction]]`).

use super::reader::{BundleError, BundleTable};
use crate::policy::redact::RedactionRule;
use regex::RegexBuilder;

/// Maximum size of a compiled pattern in bytes, limited because large patterns slow down redaction.
const PATTERN_BYTES: usize = 1 << 20;
const NAME_BYTES: usize = 40;

pub(super) fn rules(root: &BundleTable<'_>) -> Result<Vec<RedactionRule>, BundleError> {
    root.sections("redaction")?.iter().map(rule).collect()
}

fn rule(section: &BundleTable<'_>) -> Result<RedactionRule, BundleError> {
    section.only(&["name", "pattern"])?;
    let kind = match section.text("name")? {
        None => "custom".to_owned(),
        Some(name) => kind(&name.text).ok_or_else(|| {
            let message = format!("`{}` is not a valid redaction name; expected a few letters and digits", name.text);
            section.source.error(&name.span, message)
        })?,
    };
    let pattern = section.required_text("pattern")?;
    let wrong = |message: String| section.source.error(&pattern.span, message);
    let expression = RegexBuilder::new(&pattern.text).size_limit(PATTERN_BYTES).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => wrong("the pattern is too large; use fewer repetitions".to_owned()),
        error => wrong(format!("`{}` is not a valid regular expression: {}", pattern.text, last_line(&error.to_string()))),
    })?;
    if expression.is_match("") {
        let message = format!("`{}` matches an empty string; expected a pattern that needs at least one character", pattern.text);
        return Err(wrong(message));
    }
    Ok(RedactionRule { kind, expression })
}

/// Converts a name to the form used in markers, such as `company-token` for `company token`. Returns `None` if the
/// result contains no letter or digit, or is too long.
fn kind(name: &str) -> Option<String> {
    let letters =
        name.trim().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let kind: String = letters.collect();
    let kind = kind.trim_matches('-').to_owned();
    (!kind.is_empty() && kind.len() <= NAME_BYTES).then_some(kind)
}

/// Returns the last line of a regex error, which states the cause. The preceding lines only show the position.
fn last_line(error: &str) -> &str {
    error.lines().last().unwrap_or(error).trim().trim_start_matches("error: ")
}
