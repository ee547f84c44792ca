//! Changes to several files that are made as a single step, their outcome after a crash, and their errors.

use crate::protocol::{PathState, PlaceChange, ToolError};
use crate::sys::file::PreImage;
use crate::sys::file::transaction::{ExpectedEntry, PathOperation, Step, TransactionFailure, commit};
use crate::tools::crash_outcome;
use crate::tools::settings::ToolSettings;
use crate::tools::write::file_change::write_error;
use crate::tools::write::git_guard::{Written, with_guard};
use std::fmt::Write as _;
use std::path::Path;

/// All steps and, for each of them, the path as written in the patch along with the content before the patch.
pub(in crate::tools::write) struct PatchSteps {
    pub steps: Vec<Step>,
    pub given: Vec<(String, PreImage)>,
}

impl PatchSteps {
    /// Returns the state of every path before and after the steps.
    pub(in crate::tools::write) fn planned_changes(&self) -> Vec<PlaceChange> {
        self.steps.iter().map(planned_change).collect()
    }

    /// Performs all steps or none of them. Fails if the files are no longer in the state for which the steps were
    /// planned.
    pub(in crate::tools::write) fn commit(&self, settings: &ToolSettings) -> Result<(), ToolError> {
        let reals: Vec<&Path> = self.steps.iter().map(|step| step.real.as_path()).collect();
        let places: Vec<Written<'_>> = reals.iter().copied().zip(self.given.iter().map(|(given, _)| given.as_str())).collect();
        with_guard(&places, || {
            settings.session.seen.write_unread(&reals, || commit(&self.steps)).map_err(|failure| self.write_error(failure))
        })
    }

    fn write_error(&self, failure: TransactionFailure) -> ToolError {
        let (given, before) = &self.given[failure.step];
        let mut error = write_error(given, *before, failure.why);
        if self.steps.len() > 1 && failure.left.is_empty() {
            error.message.push_str(". No file of the patch was changed");
        }
        if !failure.left.is_empty() {
            let left: Vec<_> = failure.left.iter().map(|path| format!("`{}`", path.display())).collect();
            let _ = write!(
                error.message,
                ". These files could not be rolled back and are still patched: {}. The originals are next to them as `.aye-*`. Tell \
                 the user",
                left.join(", ")
            );
        }
        error
    }
}

/// Returns the state of the step's path before and after the step.
fn planned_change(step: &Step) -> PlaceChange {
    let (before, after) = match &step.what {
        PathOperation::Write { content, before, .. } => {
            (crash_outcome::content(before), crash_outcome::content(&PreImage::hash(content)))
        }
        PathOperation::Remove { before: ExpectedEntry::Content(before) } => (crash_outcome::content(before), PathState::Nothing),
        PathOperation::Remove { before: ExpectedEntry::Entry(survey) } => (crash_outcome::entry(survey), PathState::Nothing),
    };
    PlaceChange { path: step.real.clone(), before, after: Some(after) }
}
