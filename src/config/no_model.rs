//! Reason why no model is available.

use super::ConfigError;
use crate::protocol::Problem;
use std::fmt;

/// Hint of the errors about a missing key or URL.
pub(super) const WITHOUT_MODEL: &str = "run `aye demo` to try aye without a model";

/// Reason why no model is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoModel {
    /// The API key is missing. The error says which one, and what the alternatives are.
    NoKey(Problem),
    /// The policy forbids the configured model.
    Forbidden(Problem),
    Wrong(ConfigError),
}

impl NoModel {
    /// Returns the error for the full-screen UI and line mode, where the user adds a missing key without a shell command.
    pub(crate) fn message_in_session(&self) -> String {
        match self {
            Self::NoKey(problem) if problem.hints.iter().any(|hint| hint == WITHOUT_MODEL) => {
                Problem { hints: Vec::new(), ..problem.clone() }.one_line()
            }
            other => other.to_string(),
        }
    }

    /// Returns the first error.
    pub(crate) fn into_problem(self) -> Problem {
        match self {
            Self::NoKey(problem) | Self::Forbidden(problem) => problem,
            Self::Wrong(error) => error.into_problem(),
        }
    }
}

/// Formats each error on one line, for use inside another message.
impl fmt::Display for NoModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey(problem) | Self::Forbidden(problem) => f.write_str(&problem.one_line()),
            Self::Wrong(error) => error.fmt(f),
        }
    }
}

impl From<ConfigError> for NoModel {
    fn from(error: ConfigError) -> Self {
        Self::Wrong(error)
    }
}
