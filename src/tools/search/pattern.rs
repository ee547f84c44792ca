//! Compiles search patterns for single lines or for multi-line text, or rejects them.

use crate::protocol::ToolError;
use crate::tools::error::invalid;
use grep_regex::{Error, ErrorKind, RegexMatcher, RegexMatcherBuilder};

/// Options that apply to a pattern.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::tools) struct PatternOptions {
    pub literal: bool,
    pub ignore_case: bool,
    pub word: bool,
    /// Whether a match may span several lines.
    pub multiline: bool,
    /// Whether `.` also matches line breaks.
    pub dot_all: bool,
}

/// Syntax that only other regex dialects support, with the name of the feature.
const FOREIGN: &[(&str, &str)] = &[
    ("(?=", "look-ahead"),
    ("(?!", "look-ahead"),
    ("(?<=", "look-behind"),
    ("(?<!", "look-behind"),
    ("(?>", "an atomic group"),
    ("(?R)", "recursion"),
    ("(?0)", "recursion"),
    ("(?(", "a condition"),
    ("(?|", "a branch reset"),
    ("(?#", "a comment"),
    ("\\K", "`\\K`"),
    ("\\Q", "`\\Q`"),
    ("\\Z", "`\\Z`"),
    ("\\h", "`\\h`"),
    ("\\R", "`\\R`"),
];

pub(in crate::tools) fn expression(pattern: &str, meaning: PatternOptions) -> Result<RegexMatcher, ToolError> {
    if pattern.is_empty() {
        return Err(invalid("`pattern` is empty; specify the text or expression to search for"));
    }
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(meaning.ignore_case)
        .fixed_strings(meaning.literal)
        .word(meaning.word)
        .multi_line(true)
        .dot_matches_new_line(meaning.multiline && meaning.dot_all);
    // With a line terminator, no match can span lines.
    if meaning.multiline {
        builder.crlf(true).line_terminator(None);
    } else {
        builder.line_terminator(Some(b'\n')).crlf(true);
    }
    builder.build(pattern).map_err(|error| invalid(format!("`pattern`: {}", invalid_pattern_reason(pattern, &error))))
}

fn invalid_pattern_reason(pattern: &str, error: &Error) -> String {
    if let ErrorKind::NotAllowed(_) | ErrorKind::Banned(_) = error.kind() {
        return "contains a line break, but lines are searched one by one; set `multiline`, or search for part of a line"
            .to_owned();
    }
    let reference = || {
        let digit = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9');
        pattern.as_bytes().windows(2).any(digit).then_some("a back-reference")
    };
    let foreign = FOREIGN.iter().find(|(mark, _)| pattern.contains(mark)).map(|(_, name)| *name);
    let short = || error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    match foreign.or_else(reference) {
        Some(name) => format!(
            "{name} is not supported ({}): search without it and filter the results, or run `rg -P` with RunCommand; set \
             `literal` to search for the plain text",
            short()
        ),
        None => format!("{error}; set `literal` to search for the plain text"),
    }
}
