//! Configuration errors: the key, its location, and the expected value.

use crate::protocol::Problem;
use std::fmt;

/// All configuration errors of a file, variable or option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    pub(crate) fn single(problem: impl Into<Problem>) -> Self {
        Self { problems: vec![problem.into()] }
    }

    pub(crate) fn multiple(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// Returns `Ok` if there are no problems.
    pub(super) fn unless_empty(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Prepends the name of the file to each error.
    #[must_use]
    pub(crate) fn with_location(self, place: impl fmt::Display) -> Self {
        Self { problems: self.problems.into_iter().map(|problem| problem.with_location(&place)).collect() }
    }

    /// Returns a single error that contains the other errors as lines.
    pub(crate) fn into_problem(self) -> Problem {
        Problem::joined(self.problems)
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

/// Formats the errors as one line each, for use within another message.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.problems.iter().map(Problem::one_line).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
