//! Hook matchers, which consist of either one or more names or a regular expression.

use regex::{Regex, RegexBuilder};

/// Maximum size of a matcher, in bytes.
const MAX_BYTES: usize = 1 << 10;
/// Maximum size of a compiled regular expression, in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// Condition on a tool's name, or on the detail of an event that does not concern a tool.
#[derive(Debug, Clone)]
pub(crate) enum Matcher {
    All,
    /// Matches exactly one of these names.
    Names(Vec<String>),
    /// Matches a name if the expression matches any part of it.
    Pattern(Regex),
}

impl Matcher {
    /// Parses a matcher. Plain names separated by `|` or commas are matched exactly; any other text is treated as a
    /// regular expression.
    ///
    /// # Errors
    /// Returns an error if the text is too long or the expression is invalid.
    pub(crate) fn read(text: Option<&str>) -> Result<Self, String> {
        let text = text.unwrap_or_default().trim();
        if matches!(text, "" | "*") {
            return Ok(Self::All);
        }
        if text.len() > MAX_BYTES {
            return Err(format!("`matcher` is {} bytes; the limit is {MAX_BYTES}", text.len()));
        }
        let is_plain = |letter: char| letter.is_alphanumeric() || "_-:/ |,".contains(letter);
        if text.chars().all(is_plain) {
            let names = text.split(['|', ',']).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
            return Ok(Self::Names(names.collect()));
        }
        let compiled = RegexBuilder::new(text).size_limit(MAX_COMPILED_BYTES).build();
        compiled.map(Self::Pattern).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("`matcher` is not a valid regular expression ({why})")
        })
    }

    /// Returns whether the condition matches any of the given alternative names.
    pub(crate) fn matches<S: AsRef<str>>(&self, names: &[S]) -> bool {
        let mut names = names.iter().map(AsRef::as_ref);
        match self {
            Self::All => true,
            Self::Names(known) => names.any(|name| known.iter().any(|known| known == name)),
            Self::Pattern(pattern) => names.any(|name| pattern.is_match(name)),
        }
    }

    /// Returns the matcher's text for display.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::All => "*".to_owned(),
            Self::Names(names) => names.join("|"),
            Self::Pattern(pattern) => pattern.as_str().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_match_exactly_and_regular_expressions_match_anywhere_in_a_name() {
        let cases: [(&str, &[&str], &[&str]); 7] = [
            ("", &["Bash", "mcp__docs__search"], &[]),
            ("*", &["Edit"], &[]),
            ("Bash", &["Bash"], &["BashOutput", "bash"]),
            ("Edit|Write", &["Edit", "Write"], &["MultiEdit"]),
            ("Edit, Write", &["Edit", "Write"], &["Edit, Write"]),
            ("mcp__.*__write.*", &["mcp__files__write_file"], &["mcp__files__read_file"]),
            ("Notebook.*", &["NotebookEdit"], &["Edit"]),
        ];
        for (text, yes, no) in cases {
            let matcher = Matcher::read(Some(text)).unwrap();
            assert!(yes.iter().all(|name| matcher.matches(&[name])), "{text}");
            assert!(!no.iter().any(|name| matcher.matches(&[name])), "{text}");
        }
        assert!(Matcher::read(None).unwrap().matches::<&str>(&[]), "an event without a detail");
    }

    #[test]
    fn an_invalid_expression_is_an_error_that_names_the_reason() {
        for text in ["Edit(", "[", "(?=look)x", "a{99999}{99999}"] {
            let why = Matcher::read(Some(text)).unwrap_err();
            assert!(why.starts_with("`matcher` is not a valid regular expression ("), "{why}");
        }
        assert!(Matcher::read(Some(&"x".repeat(2000))).unwrap_err().contains("limit"));
    }
}
