//! Error for an invalid policy: the location, the expected content, the source line, and how to fix it.

use super::error::CliError;
use crate::policy::{BundleError, quote_entry};
use crate::protocol::Problem;

const MAX_CELLS: usize = 160;

/// Returns the error at startup. While aye runs, the last valid policy stays in effect, so the hint does not apply
/// then.
pub(crate) fn invalid_policy(error: &BundleError, bytes: &[u8]) -> CliError {
    let problem = with_its_line(error, bytes);
    CliError::usage(problem.hint("run `aye policy validate` to list all errors; aye runs nothing under an invalid policy"))
}

/// Returns the error together with its source line.
pub(crate) fn with_its_line(error: &BundleError, bytes: &[u8]) -> Problem {
    let line = excerpt(error, &String::from_utf8_lossy(bytes));
    Problem { excerpt: line.into_iter().collect(), ..Problem::new(error.to_string()) }
}

/// Returns the numbered source line of an error.
pub(crate) fn excerpt(error: &BundleError, text: &str) -> Option<String> {
    let line = error.line?;
    let source = quote_entry(text, line).into_iter().next().filter(|source| !source.trim().is_empty())?;
    Some(number_line(line, &source))
}

/// Returns `  12 │ decision = "permit"`.
pub(crate) fn number_line(line: usize, source: &str) -> String {
    let source = source.replace('\t', " ");
    format!("  {line:>3} │ {}", crate::text::truncate(&crate::text::reveal(&source), MAX_CELLS))
}
