//! Configuration errors, which give the key, its location, and the expected value.

use crate::protocol::Problem;
use std::fmt;

/// All configuration errors in a file, variable or option.
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

    /// Returns an error that contains all of the problems, or `Ok` if there are none.
    pub(super) fn unless_empty(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Prepends a file name or other location to each error.
    #[must_use]
    pub(crate) fn with_location(self, place: impl fmt::Display) -> Self {
        Self { problems: self.problems.into_iter().map(|problem| problem.with_location(&place)).collect() }
    }

    /// Merges the errors into a single one, which lists the others as lines.
    pub(crate) fn into_problem(self) -> Problem {
        Problem::joined(self.problems)
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

/// Formats each error on one line, for use inside another message.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.problems.iter().map(Problem::one_line).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ConfigError {}
