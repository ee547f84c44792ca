//! Why a run could not begin, and with which exit code it says so.

use super::exit::Exit;
use crate::config::ConfigError;
use crate::policy::BundleError;
use crate::store::StoreError;

/// A sentence for the person and the code for the script.
#[derive(Debug)]
pub struct Trouble {
    pub exit: Exit,
    pub message: String,
}

impl Trouble {
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }
}

impl From<ConfigError> for Trouble {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<BundleError> for Trouble {
    fn from(error: BundleError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotAnId { .. }
            | StoreError::NoSession { .. }
            | StoreError::Ambiguous { .. }
            // Where the data directory is, is a matter of configuration.
            | StoreError::Unusable { .. }
            // What to do about it is said on the command line.
            | StoreError::Held { .. } => Self::usage(error.to_string()),
            StoreError::Newer { .. } | StoreError::NoBackup { .. } | StoreError::Database { .. } => Self::failed(error.to_string()),
        }
    }
}
