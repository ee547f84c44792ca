//! Detects data that a URL itself would send, such as long or secret-looking text in its host, path or query.

use super::parse::{Destination, Host};

/// Maximum length, in bytes, of an ordinary query. A longer query may leak data.
const LONG_QUERY: usize = 256;
const LONG_PATH: usize = 512;
const LONG_NAME: usize = 100;
const LONG_LABEL: usize = 40;
/// Minimum length, in bytes, of an unbroken run of characters that is assumed to be a key. A hexadecimal commit hash is
/// shorter.
const LONG_RUN: usize = 44;
/// Minimum length, in bytes, of a parameter value that may be a secret. Values of flags are shorter.
const NAMED_SECRET: usize = 6;

/// Prefixes of well-known keys.
const KEYS: &[&str] = &[
    "sk-",
    "sk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "npm_",
    "pypi-",
];
const KEY_LENGTH: usize = 16;

const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "auth",
    "credential",
    "private_key",
];

/// Returns why a URL may leak data, or `None` if there is no indication of this.
pub(crate) fn leak_reason(destination: &Destination) -> Option<String> {
    if let Host::Name(name) = destination.host()
        && (name.len() > LONG_NAME || name.split('.').any(|label| label.len() > LONG_LABEL))
    {
        return Some("the host name is long enough to leak data".to_owned());
    }
    let (path, query) = destination.path_and_query();
    let query = query.unwrap_or_default();
    if query.len() > LONG_QUERY || path.len() > LONG_PATH {
        return Some("the URL is long enough to leak data".to_owned());
    }
    let named =
        |pair: &str| pair.split_once('=').is_some_and(|(name, value)| value.len() >= NAMED_SECRET && is_secret_name(name));
    if query.split(['&', ';']).any(named) {
        return Some("the URL contains a parameter named like a secret".to_owned());
    }
    (contains_key(path) || contains_key(query)).then(|| "the URL contains text that looks like a key".to_owned())
}

/// Returns whether a string contains an unbroken run of characters that looks like a key.
pub(crate) fn contains_key(text: &str) -> bool {
    let run = |run: &str| run.len() >= LONG_RUN || (run.len() >= KEY_LENGTH && KEYS.iter().any(|key| run.starts_with(key)));
    let between = |letter: char| !letter.is_ascii_alphanumeric() && !"_-%+".contains(letter);
    text.split(between).any(|part| run(part) && !is_words(part))
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|secret| name.ends_with(secret)) || name == "key" || name.ends_with("_key")
}

/// Returns whether a long text consists of words, as in `how-to-write-a-compiler-in-a-weekend`.
fn is_words(text: &str) -> bool {
    let word = |word: &str| word.len() <= 16 && word.chars().all(|letter| letter.is_ascii_alphabetic());
    text.split(['-', '_', '+']).filter(|part| !word(part)).count() <= 1
        && text.split(['-', '_', '+']).count() > 3
        && text.split(['-', '_', '+']).all(|part| part.len() <= 16)
}
