//! Session IDs on the command line.

pub(crate) fn session_id(given: &str) -> Result<String, String> {
    if looks_like_an_id(given) {
        return Ok(given.to_ascii_lowercase());
    }
    Err("must be at least 6 hex digits of a session ID\nhint: run `aye sessions list` to list the IDs".to_owned())
}

/// Returns true if a word could be a session ID or its first digits.
pub(crate) fn looks_like_an_id(word: &str) -> bool {
    (6..=32).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}
