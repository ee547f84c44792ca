//! User-facing errors as structured data: what failed, why, and hints.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Label at the start of an error.
const ERROR: &str = "error: ";
/// Label at the start of a hint.
pub const HINT: &str = "hint: ";

/// Error to show to the user. Library code fills in the fields, and front ends lay them out with [`Problem::lines`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Action that failed, including the value involved: ``cannot write `/etc/x` ``.
    pub what: String,
    /// Reason for the failure, such as `permission denied`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Lines that show where the error is, such as a numbered line from a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excerpt: Vec<String>,
    /// Actions that would solve the problem, one per hint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// Kind of a line in a displayed error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemLine {
    Message,
    Excerpt,
    Hint,
}

impl Problem {
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), why: None, excerpt: Vec::new(), hints: Vec::new() }
    }

    /// Adds the reason for the failure.
    #[must_use]
    pub fn because(self, why: impl fmt::Display) -> Self {
        Self { why: Some(why.to_string()), ..self }
    }

    /// Adds an action that the user can take.
    #[must_use]
    pub fn hint(mut self, action: impl Into<String>) -> Self {
        self.hints.push(action.into());
        self
    }

    /// Prepends a location to the message: ``/etc/x line 3: …``.
    #[must_use]
    pub fn with_location(self, place: impl fmt::Display) -> Self {
        Self { what: format!("{place}: {}", self.what), ..self }
    }

    /// Merges several errors into the first one, appending the others to its excerpt.
    pub fn joined(problems: Vec<Self>) -> Self {
        let mut problems = problems.into_iter();
        let mut first = problems.next().unwrap_or_else(|| Self::new("unknown error"));
        first.excerpt.extend(problems.map(|problem| problem.one_line()));
        first
    }

    /// Returns the message and the hints on a single line.
    pub fn one_line(&self) -> String {
        let mut line = self.to_string();
        for hint in &self.hints {
            line.push_str("; ");
            line.push_str(hint);
        }
        line
    }

    /// Returns the message followed by the excerpt, without labels or hints.
    pub fn detailed_message(&self) -> String {
        self.excerpt.iter().fold(self.to_string(), |text, line| format!("{text}\n{line}"))
    }

    /// Returns the labelled lines to display: the message, the excerpt, and each hint.
    pub fn lines(&self) -> Vec<(ProblemLine, String)> {
        let message = (ProblemLine::Message, format!("{ERROR}{self}"));
        let excerpt = self.excerpt.iter().map(|line| (ProblemLine::Excerpt, line.clone()));
        let hints = self.hints.iter().map(|hint| (ProblemLine::Hint, format!("{HINT}{hint}")));
        [message].into_iter().chain(excerpt).chain(hints).collect()
    }

    /// Returns the displayed lines as text, without a trailing line break.
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.lines().into_iter().map(|(_, line)| line).collect();
        lines.join("\n")
    }
}

/// Formats the message without the hints: `failure: cause`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => write!(f, "{}: {why}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Problem {}

impl From<String> for Problem {
    fn from(what: String) -> Self {
        Self::new(what)
    }
}

impl From<&str> for Problem {
    fn from(what: &str) -> Self {
        Self::new(what)
    }
}

impl From<&String> for Problem {
    fn from(what: &String) -> Self {
        Self::new(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_one_line_for_the_failure_and_one_for_each_hint() {
        let problem = Problem::new("cannot write `/etc/x`").because("permission denied").hint("choose another path");
        let problem = problem.hint("run as the owner");
        assert_eq!(
            problem.text(),
            "error: cannot write `/etc/x`: permission denied\nhint: choose another path\nhint: run as the owner"
        );
        assert_eq!(problem.one_line(), "cannot write `/etc/x`: permission denied; choose another path; run as the owner");
        assert_eq!(problem.to_string(), "cannot write `/etc/x`: permission denied");
    }

    #[test]
    fn errors_start_with_the_location_and_show_the_excerpt_before_hints() {
        let problem = Problem { excerpt: vec!["    3 │ x = 1".to_owned()], ..Problem::new("unknown key `x`") };
        let problem = problem.with_location("`config.toml` line 3").hint("remove it");
        assert_eq!(problem.text(), "error: `config.toml` line 3: unknown key `x`\n    3 │ x = 1\nhint: remove it");
    }

    #[test]
    fn errors_without_hints_serialize_without_empty_fields() {
        assert_eq!(
            serde_json::to_string(&Problem::new("no").because("it is full")).unwrap(),
            r#"{"what":"no","why":"it is full"}"#
        );
    }
}
