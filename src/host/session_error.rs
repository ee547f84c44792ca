//! Errors that prevent a session from being opened. Each front end maps them to its own error codes.

use super::error::CliError;
use super::exit::Exit;
use crate::config::NoModel;
use crate::protocol::SessionId;
use crate::store::StoreError;

/// Reason a session could not be opened.
#[derive(Debug)]
pub(crate) enum SessionError {
    /// The session does not exist, or the store failed.
    Store(StoreError),
    /// Another process owns the session and did not exit when asked to do so.
    Locked {
        id: SessionId,
        pid: u32,
    },
    /// A policy is invalid or is restricted to a different session.
    Policy(CliError),
    Model(NoModel),
    Failed(CliError),
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Held { id, pid } => Self::Locked { id: SessionId::new(id), pid },
            error => Self::Store(error),
        }
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => error.into(),
            SessionError::Locked { id, pid } => StoreError::Held { id: id.to_string(), pid }.into(),
            SessionError::Model(NoModel::NoKey(problem)) => Self::new(Exit::Authentication, problem),
            SessionError::Model(NoModel::Forbidden(problem)) => Self::usage(problem),
            SessionError::Model(NoModel::Wrong(error)) => error.into(),
            SessionError::Policy(error) | SessionError::Failed(error) => error,
        }
    }
}
