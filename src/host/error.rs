//! The reason why a run could not start, with its exit code.

use super::exit::Exit;
use crate::config::ConfigError;
use crate::policy::BundleError;
use crate::store::StoreError;
use crate::transfer::error::TransferError;

/// A message for the user, and the exit code for scripts.
#[derive(Debug)]
pub(crate) struct CliError {
    pub exit: Exit,
    pub message: String,
}

impl CliError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<BundleError> for CliError {
    fn from(error: BundleError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotAnId { .. }
            | StoreError::NoSession { .. }
            | StoreError::Ambiguous { .. }
            // The data directory is a matter of configuration.
            | StoreError::Unusable { .. }
            // The command line offers the solution.
            | StoreError::Held { .. } => Self::usage(error.to_string()),
            StoreError::Newer { .. } | StoreError::NoBackup { .. } | StoreError::Database { .. } => Self::failed(error.to_string()),
        }
    }
}

impl From<TransferError> for CliError {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Store(error) => error.into(),
            TransferError::Failed(message) => Self::failed(message),
        }
    }
}
