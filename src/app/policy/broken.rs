//! What a person is told of a policy that cannot be read: where, the line itself, what was expected, what to do.

use super::origin::quoted;
use crate::app::trouble::Trouble;
use crate::policy::BundleError;

const MOST_CELLS: usize = 160;

pub fn broken(error: &BundleError, bytes: &[u8]) -> Trouble {
    let mut message = error.to_string();
    if let Some(line) = excerpt(error, &String::from_utf8_lossy(bytes)) {
        message.push('\n');
        message.push_str(&line);
    }
    message.push_str("\n  nothing runs under a policy that cannot be read; `aye policy validate` lists all that is wrong");
    Trouble::usage(message)
}

/// The line of a mistake, numbered.
pub fn excerpt(error: &BundleError, text: &str) -> Option<String> {
    let line = error.line?;
    let source = quoted(text, line).into_iter().next().filter(|source| !source.trim().is_empty())?;
    Some(numbered(line, &source))
}

/// `  12 │ decision = "permit"`
pub fn numbered(line: usize, source: &str) -> String {
    let source = source.replace('\t', " ");
    format!("  {line:>3} │ {}", crate::text::truncate(&crate::text::reveal(&source), MOST_CELLS))
}
