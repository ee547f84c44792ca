//! Errors in a file, with line numbers.

use serde::Serialize;

/// Error in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    /// Line number (1-based); `None` if the error does not concern a particular line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub message: String,
}

impl Fault {
    pub(crate) fn at(line: usize, message: impl Into<String>) -> Self {
        Self { line: Some(line), message: message.into() }
    }

    pub(crate) fn general(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }

    /// Returns the message prefixed with the file and line: `.claude/skills/pdf/SKILL.md:3: …`.
    pub(crate) fn with_file(&self, file: &str) -> String {
        match self.line {
            Some(line) => format!("{file}:{line}: {}", self.message),
            None => format!("{file}: {}", self.message),
        }
    }
}
