//! Reason why a session could not be opened, which front ends map to their error codes.

use super::error::CliError;
use super::exit::Exit;
use crate::config::NoModel;
use crate::protocol::SessionId;
use crate::store::StoreError;

/// The reason why a session could not be opened.
#[derive(Debug)]
pub(crate) enum SessionError {
    /// There is no such session, or the store failed.
    Store(StoreError),
    /// Another process owns the session, and did not exit if it was asked to.
    Locked {
        id: SessionId,
        pid: u32,
    },
    /// A policy is invalid, or applies only to another session.
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
