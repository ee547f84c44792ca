//! Session IDs given on the command line.

use crate::protocol::Problem;

pub(crate) fn session_id(given: &str) -> Result<String, Problem> {
    if is_possible_id(given) {
        return Ok(given.to_ascii_lowercase());
    }
    Err(Problem::new("must be at least 6 hex digits of a session ID").hint("run `aye sessions list` to list the IDs"))
}

/// Returns whether a word could be a session ID or its beginning.
pub(crate) fn is_possible_id(word: &str) -> bool {
    (6..=32).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns a shortened session ID for use on the command line.
pub(crate) fn short_id(id: &crate::protocol::SessionId) -> &str {
    id.as_str().get(..8).unwrap_or(id.as_str())
}
