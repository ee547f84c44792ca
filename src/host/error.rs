//! Error that ends a command, with its exit code.

use super::exit::Exit;
use crate::config::ConfigError;
use crate::policy::BundleError;
use crate::protocol::Problem;
use crate::store::StoreError;
use crate::transfer::error::TransferError;
use std::fmt;

/// Errors to show to the user, and the exit code for scripts.
#[derive(Debug)]
pub(crate) struct CliError {
    pub exit: Exit,
    pub problems: Vec<Problem>,
}

impl CliError {
    pub(crate) fn new(exit: Exit, problem: impl Into<Problem>) -> Self {
        Self { exit, problems: vec![problem.into()] }
    }

    pub(crate) fn usage(problem: impl Into<Problem>) -> Self {
        Self::new(Exit::Usage, problem)
    }

    pub(crate) fn failed(problem: impl Into<Problem>) -> Self {
        Self::new(Exit::Failed, problem)
    }

    /// Adds a hint, which suggests an action to the user.
    #[must_use]
    pub(crate) fn hint(mut self, action: impl Into<String>) -> Self {
        if let Some(last) = self.problems.last_mut() {
            last.hints.push(action.into());
        }
        self
    }
}

impl CliError {
    /// Combines the errors into a single one, in which each error is a line.
    pub(crate) fn into_problem(self) -> Problem {
        Problem::joined(self.problems)
    }
}

/// Formats each error as a single line, for use inside another message.
impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.problems.iter().map(Problem::one_line).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self { exit: Exit::Usage, problems: error.into_problems() }
    }
}

impl From<BundleError> for CliError {
    fn from(error: BundleError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let exit = match error {
            StoreError::NotAnId { .. }
            | StoreError::NoSession { .. }
            | StoreError::Ambiguous { .. }
            | StoreError::OfAgent { .. }
            // An error of the data directory is a configuration error.
            | StoreError::Unusable { .. }
            // The command line adds the hint.
            | StoreError::Held { .. } => Exit::Usage,
            StoreError::Newer { .. } | StoreError::NoBackup { .. } | StoreError::Database { .. } => Exit::Failed,
        };
        Self::new(exit, error)
    }
}

impl From<TransferError> for CliError {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Store(error) => error.into(),
            TransferError::Failed(problem) => Self::failed(problem),
        }
    }
}
