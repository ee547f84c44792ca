//! Conditions of hooks (`if`), which select calls by tool and argument, such as `Bash(git commit:*)`.

/// Maximum size of a condition, in bytes.
const MAX_BYTES: usize = 1 << 10;

/// Condition on a call, in the notation of permission rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookCondition {
    /// Condition as written in the hook file.
    pub text: String,
    /// Name of the tool.
    pub tool: String,
    /// Pattern for the command line or the file path. `None` matches all calls of the tool.
    pub pattern: Option<String>,
}

impl HookCondition {
    /// Parses a condition: a tool name that may be followed by a pattern in parentheses.
    ///
    /// # Errors
    /// Returns an error if the text is empty or too long, or if a parenthesis is missing.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_BYTES {
            return Err(format!("`if` is {} bytes; the limit is {MAX_BYTES}", text.len()));
        }
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(pattern) => (tool, Some(pattern.trim())),
                None => return Err("`if` has no closing parenthesis".to_owned()),
            },
        };
        let tool = tool.trim();
        if tool.is_empty() || tool.contains(char::is_whitespace) || tool.contains(')') {
            return Err("`if` is not a tool with a pattern, such as `Bash(git commit:*)`".to_owned());
        }
        let pattern = pattern.filter(|pattern| !matches!(*pattern, "" | "*")).map(str::to_owned);
        Ok(Self { text: text.to_owned(), tool: tool.to_owned(), pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_tool_with_an_optional_pattern() {
        for (text, tool, pattern) in [
            ("Bash(git commit:*)", "Bash", Some("git commit:*")),
            (" Edit(src/**/*.rs) ", "Edit", Some("src/**/*.rs")),
            ("Bash(echo (a))", "Bash", Some("echo (a)")),
            ("Bash(*)", "Bash", None),
            ("mcp__docs__search", "mcp__docs__search", None),
        ] {
            let condition = HookCondition::read(text).unwrap();
            assert_eq!((condition.tool.as_str(), condition.pattern.as_deref()), (tool, pattern), "{text}");
        }
        for text in ["", "(x)", "Bash(git", "Bash git", "Bash)"] {
            assert!(HookCondition::read(text).is_err(), "{text}");
        }
    }
}
