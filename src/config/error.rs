//! Configuration errors: the key, its place, and the expected value.

use std::fmt;

/// All configuration errors, one sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigError {
    problems: Vec<String>,
}

impl ConfigError {
    pub(crate) fn one(problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()] }
    }

    /// Returns `Ok` if there are no problems.
    pub(super) fn unless_empty(problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
