//! Formats the error for an invalid policy, including the location, what was expected, the source line, and how to fix
//! it.

use super::error::CliError;
use crate::policy::{BundleError, quote_entry};
use crate::protocol::Problem;

const MAX_CELLS: usize = 160;

/// Returns the error that is shown at startup. Its hint does not apply while aye is running, because the last valid
/// policy then remains in effect.
pub(crate) fn invalid_policy(error: &BundleError, bytes: &[u8]) -> CliError {
    let problem = with_its_line(error, bytes);
    CliError::usage(problem.hint("run `aye policy validate` to list all errors; aye runs nothing under an invalid policy"))
}

/// Adds the source line to an error.
pub(crate) fn with_its_line(error: &BundleError, bytes: &[u8]) -> Problem {
    let line = excerpt(error, &String::from_utf8_lossy(bytes));
    Problem { excerpt: line.into_iter().collect(), ..Problem::new(error.to_string()) }
}

/// Returns the source line of an error, with its line number.
pub(crate) fn excerpt(error: &BundleError, text: &str) -> Option<String> {
    let line = error.line?;
    let source = quote_entry(text, line).into_iter().next().filter(|source| !source.trim().is_empty())?;
    Some(number_line(line, &source))
}

/// Formats a source line with its number, as in `  12 │ decision = "permit"`.
pub(crate) fn number_line(line: usize, source: &str) -> String {
    let source = source.replace('\t', " ");
    format!("  {line:>3} │ {}", crate::text::truncate(&crate::text::reveal(&source), MAX_CELLS))
}
