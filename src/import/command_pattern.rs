//! Patterns with which other agents' settings select commands.

use crate::text::split_words;

/// Commands that a settings entry matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandPattern {
    Every,
    /// Exactly this command line.
    Line(String),
    /// All commands that begin with these words. Each word is given as a list of alternatives, and the last word may
    /// end with `*`.
    Beginning(Vec<Vec<String>>),
    /// Pattern that cannot be expressed as a rule, for the given reason.
    Other(String),
}

/// Characters that do not occur in a single plain command.
const OPERATORS: &[char] = &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\n', '{', '}'];

impl CommandPattern {
    /// Parses a pattern in which `*` matches any text, and a trailing ` *` or `:*` matches any arguments.
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim();
        if text.chars().all(|letter| matches!(letter, '*' | ':' | ' ')) {
            return Self::Every;
        }
        let open = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")).map(str::trim_end);
        let Some(start) = open.or_else(|| text.strip_suffix('*')) else {
            return if text.contains(['*', '?']) { Self::inner(text) } else { Self::Line(text.to_owned()) };
        };
        if start.contains(['*', '?']) {
            return Self::inner(text);
        }
        if start.contains(OPERATORS) {
            return Self::Other("the pattern matches more than one plain command".to_owned());
        }
        let Some(mut words) = split_words(start) else { return Self::Other("the quotes are not closed".to_owned()) };
        if let (None, Some(last)) = (open, words.last_mut()) {
            last.push('*');
        }
        Self::beginning(words)
    }

    /// Returns a pattern that matches every command beginning with these words.
    pub(super) fn beginning(words: Vec<String>) -> Self {
        if words.is_empty() { Self::Every } else { Self::Beginning(words.into_iter().map(|word| vec![word]).collect()) }
    }

    fn inner(text: &str) -> Self {
        Self::Other(format!("`{text}` has a wildcard inside the command; aye's rules match only its first words"))
    }
}

/// Splits a command line into words. Returns an error unless it is a single plain command.
pub(super) fn split_plain_command(line: &str) -> Result<Vec<String>, String> {
    if line.contains(OPERATORS) {
        return Err("the pattern matches more than one plain command".to_owned());
    }
    match split_words(line) {
        Some(words) if !words.is_empty() => Ok(words),
        Some(_) => Err("the pattern does not name a command".to_owned()),
        None => Err("the quotes are not closed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(words: &[&str]) -> CommandPattern {
        CommandPattern::beginning(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn command_patterns_are_parsed_as_by_other_agents() {
        for (text, expected) in [
            ("*", CommandPattern::Every),
            ("", CommandPattern::Every),
            (":*", CommandPattern::Every),
            ("npm run test:*", beginning(&["npm", "run", "test"])),
            ("npm run test *", beginning(&["npm", "run", "test"])),
            ("npm*", beginning(&["npm*"])),
            ("git 'a b':*", beginning(&["git", "a b"])),
            ("make", CommandPattern::Line("make".to_owned())),
            ("cd x && make", CommandPattern::Line("cd x && make".to_owned())),
        ] {
            assert_eq!(CommandPattern::parse(text), expected, "{text}");
        }
        for text in ["git * main", "* --force", "cd x && make:*", "echo $(x) *", "git '*", "ls ?", "a 'b:*"] {
            assert!(matches!(CommandPattern::parse(text), CommandPattern::Other(_)), "{text}");
        }
    }

    #[test]
    fn lines_with_operators_or_without_words_are_not_plain_commands() {
        assert!(split_plain_command("a | b").is_err() && split_plain_command(" ").is_err());
    }
}
