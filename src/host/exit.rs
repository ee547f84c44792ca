//! Exit codes, on which scripts depend.

use crate::headless::Outcome;
use std::process::ExitCode;

/// Exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Completed,
    /// The task or the provider failed.
    Failed,
    /// Invalid usage, configuration or policy file.
    Usage,
    /// The task completed, but the policy denied an action or no user could approve it.
    Denied,
    /// The limit on steps, tokens or cost was reached.
    Limit,
    Authentication,
    /// The response does not conform to the `--output-schema`.
    Mismatch,
    /// `aye update --check` found a newer version. The code is the same as for `dnf check-update`.
    UpdateAvailable,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    /// All exit codes, in ascending order.
    pub const ALL: [Self; 10] = [
        Self::Completed,
        Self::Failed,
        Self::Usage,
        Self::Denied,
        Self::Limit,
        Self::Authentication,
        Self::Mismatch,
        Self::UpdateAvailable,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// Returns a sentence that describes the exit code in the manual.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Completed => "The command succeeded.",
            Self::Failed => "The command, the task or the model provider failed.",
            Self::Usage => "The command line, the configuration or a policy file is invalid.",
            Self::Denied => "The task completed, but the policy denied an action or nobody could approve it.",
            Self::Limit => "A limit on steps, tokens or cost was reached.",
            Self::Authentication => "An API key or a sign-in is missing or was rejected.",
            Self::Mismatch => "The response does not match the schema of --output-schema.",
            Self::UpdateAvailable => "aye update --check found a newer version.",
            Self::Interrupted => "aye was interrupted (SIGINT).",
            Self::Terminated => "aye was terminated (SIGTERM).",
        }
    }

    pub fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Denied => 3,
            Self::Limit => 4,
            Self::Authentication => 5,
            Self::Mismatch => 6,
            Self::UpdateAvailable => 100,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::CompletedWithDenials => Self::Denied,
            // The reader closed the output early.
            Outcome::Failed | Outcome::OutputClosed => Self::Failed,
            Outcome::LimitReached => Self::Limit,
            Outcome::AuthenticationFailed => Self::Authentication,
            Outcome::SchemaMismatch => Self::Mismatch,
            // Only a signal cancels a run without a screen; its receiver knows the exit code.
            Outcome::Cancelled => Self::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_documented_exit_code() {
        for (outcome, code) in [
            (Outcome::Completed, 0),
            (Outcome::Failed, 1),
            (Outcome::OutputClosed, 1),
            (Outcome::CompletedWithDenials, 3),
            (Outcome::LimitReached, 4),
            (Outcome::AuthenticationFailed, 5),
            (Outcome::SchemaMismatch, 6),
            (Outcome::Cancelled, 130),
        ] {
            assert_eq!(Exit::from(outcome).code(), code, "{outcome:?}");
        }
        assert_eq!((Exit::Usage.code(), Exit::Terminated.code()), (2, 143));
        assert!(Exit::ALL.map(Exit::code).is_sorted(), "the manual lists them in order");
    }
}
