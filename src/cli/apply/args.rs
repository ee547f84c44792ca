//! `aye apply`: clap definition and checked action.

use super::{ApplyRequest, Form};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// Patch file, or `-` to read it from stdin
    pub file: PathBuf,
    /// Show what would happen, without doing it
    ///
    /// The exit code is 3 if the policy denies a change.
    #[arg(long, conflicts_with = "yes")]
    pub check: bool,
    /// Approve changes if needed (denied changes stay denied)
    #[arg(long)]
    pub yes: bool,
}

impl ApplyArgs {
    pub(crate) fn check(self) -> ApplyRequest {
        let form = match (self.check, self.yes) {
            (true, _) => Form::Check,
            (false, true) => Form::Yes,
            (false, false) => Form::Ask,
        };
        ApplyRequest { file: self.file, form }
    }
}
