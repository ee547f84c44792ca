//! Error text for an invalid policy: the place, the line, the expected content, and what to do.

use super::error::CliError;
use crate::policy::{BundleError, entry_at};

/// Added at a start only; while aye runs, the last valid policy stays in force.
pub(crate) const NOTHING_RUNS: &str = "\n  nothing runs under an invalid policy; run `aye policy validate` to list all errors";
const MAX_CELLS: usize = 160;

pub(crate) fn broken(error: &BundleError, bytes: &[u8]) -> CliError {
    let mut message = with_its_line(error, bytes);
    message.push_str(NOTHING_RUNS);
    CliError::usage(message)
}

/// Returns the error with the source of its line.
pub(crate) fn with_its_line(error: &BundleError, bytes: &[u8]) -> String {
    match excerpt(error, &String::from_utf8_lossy(bytes)) {
        Some(line) => format!("{error}\n{line}"),
        None => error.to_string(),
    }
}

/// Returns the numbered source line of an error.
pub(crate) fn excerpt(error: &BundleError, text: &str) -> Option<String> {
    let line = error.line?;
    let source = entry_at(text, line).into_iter().next().filter(|source| !source.trim().is_empty())?;
    Some(numbered(line, &source))
}

/// Returns `  12 │ decision = "permit"`.
pub(crate) fn numbered(line: usize, source: &str) -> String {
    let source = source.replace('\t', " ");
    format!("  {line:>3} │ {}", crate::text::truncate(&crate::text::reveal(&source), MAX_CELLS))
}
