//! Errors of the object store, classified by their solution.

use crate::protocol::Problem;
use crate::store::StoreError;
use crate::transfer::error::TransferError;
use crate::transfer::format::one_line;

/// Kind of an object store error, by its solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkspaceProblem {
    /// The store cannot be reached, or is overloaded. The same request may succeed later.
    Temporary,
    /// The settings or the credentials are wrong.
    Settings,
    /// Another machine owns the session, or its history is different.
    Conflict,
    /// An object is damaged, or has an unknown format.
    Damaged,
    /// An object to which a head refers does not exist.
    Missing,
    /// A file or the session store on this machine cannot be used.
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

    /// Returns the error for an object with invalid content.
    pub(super) fn damaged(uri: &str, why: impl std::fmt::Display) -> Self {
        let problem = Problem::new(format!("cannot use `{uri}`")).because(why);
        Self::new(WorkspaceProblem::Damaged, problem.hint("nothing was changed; restore the object, or push the session again"))
    }

    pub(super) fn local(problem: Problem) -> Self {
        Self::new(WorkspaceProblem::Local, problem)
    }

    /// Converts an error from the library, whose text may contain data from a server.
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

/// Error code of S3 for a request whose time differs by more than 15 minutes.
const SKEWED: &str = "RequestTimeTooSkewed";

/// Returns the messages of an error and its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Returns the innermost error, which contains the cause. The outer errors only describe the
/// request.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    /// Maximum length of an error in characters, because it may contain the body of a response.
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
