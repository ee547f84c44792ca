//! Searches the full text of sessions, one record at a time.

use super::error::CliError;
use crate::protocol::{CallArguments, Message, Part, ToolResult};
use crate::session::{CallChange, Change, SessionState};
use crate::store::{SessionSummary, Store, StoreError, TimedRecord};
use regex::{Regex, RegexBuilder};
use serde_json::Value;
use std::ops::ControlFlow;

/// Number of characters shown before and after a match.
const AROUND: usize = 60;

/// Maximum size of a compiled regular expression in bytes.
const PATTERN_BYTES: usize = 4 << 20;

/// Returns the first matching line in a session, excluding its title. Stops early if the search is cancelled.
pub(crate) fn first_hit(
    store: &Store,
    session: &SessionSummary,
    pattern: &Regex,
    is_wanted: &dyn Fn() -> bool,
) -> Result<Option<String>, StoreError> {
    let (mut hit, mut state) = (None, SessionState::default());
    store.for_each_record(&session.session_id, |TimedRecord { record, .. }| {
        texts(&state.apply(&record).change, &mut |_, text| {
            if hit.is_none() {
                hit = pattern.find(text).map(|found| matching_line(text, found.start(), found.end()));
            }
        });
        if hit.is_some() || !is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(hit)
}

/// Parses a search text. `/…/` is a regular expression, and any other text is searched for literally.
pub(crate) fn pattern(text: &str) -> Result<Regex, CliError> {
    let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')).filter(|inner| !inner.is_empty());
    let source = inner.map_or_else(|| regex::escape(text), str::to_owned);
    RegexBuilder::new(&source)
        .case_insensitive(true)
        .multi_line(true)
        .size_limit(PATTERN_BYTES)
        .build()
        .map_err(|error| CliError::usage(format!("invalid regular expression `{text}`: {error}")))
}

/// Reports all matching text in a session.
pub(crate) fn search_session(
    store: &Store,
    session: &SessionSummary,
    pattern: &Regex,
    mut tell: impl FnMut(jiff::Timestamp, &'static str, String),
) -> Result<(), StoreError> {
    let mut test = |time: jiff::Timestamp, part: &'static str, text: &str| {
        if let Some(found) = pattern.find(text) {
            tell(time, part, matching_line(text, found.start(), found.end()));
        }
    };
    if let Some(title) = &session.title {
        test(session.created, "title", title);
    }
    let mut state = SessionState::default();
    store.for_each_record(&session.session_id, |TimedRecord { time, record }| {
        let applied = state.apply(&record);
        if let Some((text, _)) = &applied.interrupted {
            test(time, "answer", text);
        }
        texts(&applied.change, &mut |part, text| test(time, part, text));
        ControlFlow::Continue(())
    })?;
    if let Some((text, _)) = state.interrupted_answer() {
        test(session.updated, "answer", text);
    }
    test(session.updated, "draft", &store.draft(&session.session_id)?);
    Ok(())
}

/// Calls `tell` once for each searchable string in a change.
fn texts(change: &Change<'_>, tell: &mut impl FnMut(&'static str, &str)) {
    match change {
        Change::TaskStarted { prompt: message, .. } | Change::Steered { message } => visit_message(message, "prompt", tell),
        Change::Answered { message, .. } => visit_message(message, "answer", tell),
        Change::Compacted { message, .. } => visit_message(message, "summary", tell),
        Change::Call { change: CallChange::Finished { result, .. }, .. } => visit_result(result, tell),
        Change::QueueChanged { prompts } => prompts.iter().for_each(|waiting| tell("prompt", &waiting.text)),
        _ => {}
    }
}

fn visit_message(message: &Message, place: &'static str, tell: &mut impl FnMut(&'static str, &str)) {
    for part in &message.content {
        match part {
            Part::Text { text } => tell(place, text),
            Part::ToolCall(call) => {
                tell("arguments", &call.tool_name);
                match &call.arguments {
                    CallArguments::Object(map) => map.values().for_each(|value| visit_value(value, tell)),
                    CallArguments::Malformed(text) => tell("arguments", text),
                }
            }
            Part::ToolResult(result) => visit_result(result, tell),
            Part::Reasoning { .. } | Part::Image(_) => {}
        }
    }
}

fn visit_result(result: &ToolResult, tell: &mut impl FnMut(&'static str, &str)) {
    tell("result", &result.output_text);
    if let Some(error) = &result.error {
        tell("result", &error.message);
    }
}

/// Calls `tell` for the strings and numbers in a value. Recursion is limited, because the parser limits the nesting
/// depth of values in the journal.
fn visit_value(value: &Value, tell: &mut impl FnMut(&'static str, &str)) {
    match value {
        Value::String(text) => tell("arguments", text),
        Value::Array(values) => values.iter().for_each(|value| visit_value(value, tell)),
        Value::Object(map) => map.values().for_each(|value| visit_value(value, tell)),
        Value::Number(number) => tell("arguments", &number.to_string()),
        Value::Bool(_) | Value::Null => {}
    }
}

/// Returns the line in which a match begins, or only the text around the match if the line is long.
fn matching_line(text: &str, start: usize, end: usize) -> String {
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let cut_from = text[from..start].char_indices().rev().nth(AROUND - 1).map_or(from, |(at, _)| from + at);
    let end = end.clamp(start, to);
    let cut_to = text[end..to].char_indices().nth(AROUND).map_or(to, |(at, _)| end + at);
    let before = if cut_from > from { "…" } else { "" };
    let after = if cut_to < to { "…" } else { "" };
    format!("{before}{}{after}", text[cut_from..cut_to].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_is_literal_and_case_insensitive_and_slashes_delimit_a_regex() {
        for (text, within, found) in [
            ("Needle", "a nEEdle here", true),
            ("a.c", "abc", false),
            ("a.c", "xa.cx", true),
            ("/a.c/", "abc", true),
            ("/^b/", "a\nb", true),
            ("ÄRGER", "kein ärger", true),
            ("/", "a/b", true),
            ("//", "a//b", true),
        ] {
            assert_eq!(pattern(text).unwrap().is_match(within), found, "{text} in {within}");
        }
        let Err(trouble) = pattern("/(/") else { panic!("it is none") };
        assert!(trouble.to_string().contains("invalid regular expression"), "{trouble}");
        assert!(pattern("/(a{1000}){1000}/").is_err());
    }

    #[test]
    fn the_line_around_a_match_is_truncated_at_character_boundaries() {
        let line = |text: &str, needle: &str| {
            let start = text.find(needle).unwrap();
            matching_line(text, start, start + needle.len())
        };
        assert_eq!(line("one\ntwo needle\nthree", "needle"), "two needle");
        let long = format!("{}needle{}", "ä".repeat(200), "ö".repeat(200));
        assert_eq!(line(&long, "needle"), format!("…{}needle{}…", "ä".repeat(60), "ö".repeat(60)));
        assert_eq!(line("a needle\nover two lines", "needle\nover"), "a needle");
    }
}
