//! Object store errors, classified by how they can be resolved.

use crate::protocol::Problem;
use crate::store::StoreError;
use crate::transfer::error::TransferError;
use crate::transfer::format::one_line;

/// Kind of object store error, which determines how it can be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkspaceProblem {
    /// The store is unreachable or overloaded. The same request may succeed later.
    Temporary,
    /// The settings or credentials are wrong.
    Settings,
    /// Another machine owns the session, or the histories have diverged.
    Conflict,
    /// An object is damaged or has an unknown format.
    Damaged,
    /// An object that a head refers to does not exist.
    Missing,
    /// A file or the session store on this machine is unusable.
    Local,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{problem}")]
pub(crate) struct WorkspaceError {
    pub kind: WorkspaceProblem,
    pub problem: Problem,
}

impl WorkspaceError {
    pub(super) fn new(kind: WorkspaceProblem, problem: Problem) -> Self {
        Self { kind, problem }
    }

    /// Returns the error for an object whose content is invalid.
    pub(super) fn damaged(uri: &str, why: impl std::fmt::Display) -> Self {
        let problem = Problem::new(format!("cannot use `{uri}`")).because(why);
        Self::new(WorkspaceProblem::Damaged, problem.hint("nothing was changed; restore the object, or push the session again"))
    }

    pub(super) fn local(problem: Problem) -> Self {
        Self::new(WorkspaceProblem::Local, problem)
    }

    /// Converts a library error, whose text may include data from a server.
    pub(super) fn from_library(what: String, error: &object_store::Error) -> Self {
        use object_store::Error;
        let (kind, why, hint) = match error {
            other if chain(other).contains(SKEWED) => (
                WorkspaceProblem::Settings,
                "this machine's clock differs too much from the store's clock".to_owned(),
                "set the clock, for example with `timedatectl set-ntp true`",
            ),
            Error::NotFound { .. } => (
                WorkspaceProblem::Settings,
                "the bucket or the object does not exist".to_owned(),
                "check `services.workspace.url`",
            ),
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => (
                WorkspaceProblem::Settings,
                "the store rejected the credentials".to_owned(),
                "check the credentials in the environment, and their permissions for the bucket",
            ),
            Error::NotImplemented { .. } | Error::NotSupported { .. } => (
                WorkspaceProblem::Settings,
                "the store does not support conditional writes".to_owned(),
                "use a store that supports `If-Match` and `If-None-Match`",
            ),
            other => (
                WorkspaceProblem::Temporary,
                one_line(&innermost(other)),
                "check the network, and `services.workspace` in config.toml; aye retries later",
            ),
        };
        Self::new(kind, Problem::new(what).because(why).hint(hint))
    }
}

/// S3 error code for a request whose timestamp is more than 15 minutes off from the server's clock.
const SKEWED: &str = "RequestTimeTooSkewed";

/// Returns the messages of an error and all of its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Returns the innermost error, which describes the actual cause. The outer errors merely describe the request.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    /// Maximum length of the message in characters. Limited because it may contain a response body.
    const CHARS: usize = 300;
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string().chars().take(CHARS).collect()
}

impl From<WorkspaceError> for Problem {
    fn from(error: WorkspaceError) -> Self {
        error.problem
    }
}

impl From<StoreError> for WorkspaceError {
    fn from(error: StoreError) -> Self {
        Self::local(error.into())
    }
}

impl From<TransferError> for WorkspaceError {
    fn from(error: TransferError) -> Self {
        Self::local(error.into())
    }
}
