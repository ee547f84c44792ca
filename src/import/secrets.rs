//! Detection of secrets in other agents' settings. They are replaced with references to environment variables.

use crate::policy::redact::{Redactor, names_a_secret};
use std::sync::Arc;

/// Minimum length in bytes of a random-looking value that is treated as a secret whatever its name.
const RANDOM_BYTES: usize = 20;
/// Minimum number of distinct characters in a random-looking value.
const DIFFERENT: usize = 10;
/// Words by which the names of variables, options and headers that contain credentials are recognized.
const CREDENTIAL_WORDS: [&str; 18] = [
    "key",
    "keys",
    "apikey",
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "passwd",
    "pwd",
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "signature",
    "pat",
    "bearer",
];

/// Finds secrets in text.
#[derive(Debug, Clone)]
pub(crate) struct SecretFinder {
    redactor: Arc<Redactor>,
}

/// Value in which a secret may have been replaced, and the environment variable that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProtectedValue {
    pub value: String,
    pub variable: Option<String>,
}

impl SecretFinder {
    pub(crate) fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor }
    }

    /// Redacts the secrets in a string, for display.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.redactor.hide(text).into_owned()
    }

    /// Returns the line number of the first secret in a text, or `None` if the text contains none.
    pub(crate) fn line_of_secret(&self, text: &str) -> Option<usize> {
        if !self.redactor.holds_secret(text) {
            return None;
        }
        let line = text.lines().position(|line| self.redactor.holds_secret(line));
        Some(line.map_or(1, |line| line + 1))
    }

    /// Returns whether the value of a variable, option or header with this name is a secret.
    pub(super) fn is_secret(&self, name: &str, value: &str) -> bool {
        let value = without_references(value);
        let value = value.trim();
        let bare = value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("Basic ")).unwrap_or(value);
        if bare.is_empty() || ["Bearer", "Basic"].contains(&bare) {
            return false;
        }
        names_a_secret(name.trim_start_matches('-'))
            || (has_credential_word(name) && !is_plain(bare))
            || looks_random(bare)
            || self.redactor.holds_secret(value)
            || self.redactor.holds_secret(&format!("{name}={value}"))
    }

    /// Returns the value to use for a variable. If the value is a secret, it is replaced with a reference to the
    /// environment variable `variable`.
    pub(super) fn protect(&self, name: &str, value: &str, variable: &str) -> ProtectedValue {
        if self.is_secret(name, value) {
            ProtectedValue { value: format!("${{{variable}}}"), variable: Some(variable.to_owned()) }
        } else {
            ProtectedValue { value: value.to_owned(), variable: None }
        }
    }

    /// Returns whether any of a program's arguments contains a secret.
    pub(super) fn has_secret_argument(&self, words: &[String]) -> bool {
        let option = |pair: &[String]| match pair {
            [name, value] => name.starts_with('-') && !value.starts_with('-') && self.is_secret(name, value),
            _ => false,
        };
        let one = |word: &String| match word.split_once('=') {
            Some((name, value)) => self.is_secret(name, value),
            None => looks_random(word) || self.redactor.holds_secret(word),
        };
        words.iter().any(one) || words.windows(2).any(option) || self.redactor.holds_secret(&words.join(" "))
    }

    /// Returns whether a URL contains a secret, such as a password or the value of a parameter.
    pub(super) fn has_secret_in_url(&self, url: &str) -> bool {
        let parameters = url.split_once('?').map_or("", |(_, parameters)| parameters);
        let parameter = |one: &str| one.split_once('=').is_some_and(|(name, value)| self.is_secret(name, value));
        let has_password = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).is_some_and(|host| host.contains('@'));
        has_password
            || parameters.split('&').any(parameter)
            || url.split(['/', '?', '&', '=']).any(looks_random)
            || self.redactor.holds_secret(url)
    }
}

fn has_credential_word(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| CREDENTIAL_WORDS.contains(&word))
}

/// Returns whether a value is just a path, a URL, a number or a boolean.
fn is_plain(value: &str) -> bool {
    let is_place = value.contains("://") || value.starts_with(['/', '.', '~']);
    is_place || value.parse::<f64>().is_ok() || ["true", "false", "none"].contains(&value)
}

/// Returns whether a value looks random: it is long, and contains letters, digits and many distinct characters.
fn looks_random(value: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+=".contains(&byte);
    let mut different: Vec<u8> = value.bytes().collect();
    different.sort_unstable();
    different.dedup();
    value.len() >= RANDOM_BYTES
        && value.bytes().all(is_token)
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        && different.len() >= DIFFERENT
        && value.split(['-', '_']).any(|part| part.len() >= RANDOM_BYTES / 2 && part.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Removes references to environment variables from a value, but keeps their default values, because these are written
/// in the file.
fn without_references(value: &str) -> String {
    let mut rest = value;
    let mut literal = String::new();
    while let Some((before, after)) = rest.split_once("${") {
        literal.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else { return literal + after };
        literal.push_str(inside.split_once(":-").map_or("", |(_, default)| default));
        rest = behind;
    }
    literal + rest
}

/// Builds the name of an environment variable, such as `GITHUB_TOKEN`.
pub(super) fn variable_name(parts: &[&str]) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    let name: String = parts.join("_").chars().map(letter).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finder() -> SecretFinder {
        SecretFinder::new(Arc::new(Redactor::new(Vec::new(), [], || [7; 32])))
    }

    #[test]
    fn secret_values_become_variable_references_and_others_are_unchanged() {
        let finder = finder();
        for (name, value) in [
            ("GITHUB_TOKEN", "abc"),
            ("API_KEY", "sk-ant-api03-aaaabbbbccccdddd"),
            ("Authorization", "Bearer abcdef"),
            ("X-Key", "hush-of-the-header"),
            ("--api-key", "abc"),
            ("X", "ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c"),
            ("X", "a8f5f167f44f4964e6c998dee827110c"),
            ("DATABASE_URL", "postgres://user:hunter22@db.example/x"),
            ("TOKEN", "${TOKEN:-fallback-secret}"),
        ] {
            let protected = finder.protect(name, value, "VARIABLE");
            assert_eq!(
                (protected.value.as_str(), protected.variable.as_deref()),
                ("${VARIABLE}", Some("VARIABLE")),
                "{name}={value}"
            );
        }
        for (name, value) in [
            ("GITHUB_TOKEN", "${GITHUB_TOKEN}"),
            ("Authorization", "Bearer ${TOKEN}"),
            ("PORT", "8080"),
            ("SSH_KEY_PATH", "/home/me/key"),
            ("AUTH_URL", "https://login.example/x"),
            ("KEYBOARD", "qwertz"),
            ("LOG_LEVEL", "debug"),
            ("ROOT", "/home/me/some/long/path/with/numbers/1234567890"),
            ("PACKAGE", "modelcontextprotocol-server-filesystem"),
            ("EMPTY", ""),
        ] {
            assert_eq!(
                finder.protect(name, value, "V"),
                ProtectedValue { value: value.to_owned(), variable: None },
                "{name}={value}"
            );
        }
    }

    #[test]
    fn secrets_in_arguments_and_urls_are_found() {
        let finder = finder();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for line in [
            "--api-key abc",
            "--token=abc",
            "-y server a8f5f167f44f4964e6c998dee827110c",
            "--header x ghp_9fK2mQ7xZ4vB1nL8kW3tR6yU0pS5dG2hJ7c",
        ] {
            assert!(finder.has_secret_argument(&words(line)), "{line}");
        }
        for line in ["-y @modelcontextprotocol/server-filesystem .", "--port 8080 --verbose", "run --rm -i mcp/fetch:latest"] {
            assert!(!finder.has_secret_argument(&words(line)), "{line}");
        }
        for url in ["https://user:pass@h/mcp", "https://h/mcp?api_key=abc", "https://h/a8f5f167f44f4964e6c998dee827110c/mcp"] {
            assert!(finder.has_secret_in_url(url), "{url}");
        }
        assert!(!finder.has_secret_in_url("https://docs.example.org/mcp?version=2&lang=en"));
    }

    #[test]
    fn generated_variable_names_are_valid() {
        assert_eq!(variable_name(&["my-server", "token"]), "MY_SERVER_TOKEN");
        assert_eq!(variable_name(&["1st", "X-Api.Key"]), "_1ST_X_API_KEY");
    }
}
