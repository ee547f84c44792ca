//! The user's review of a patch, and the record of the changes that are applied.

use super::header::FileState;
use std::fmt;
use std::sync::Arc;

/// Resulting state of each file, by path. The state is `None` if the file is deleted.
pub(crate) type FileResults = [(String, Option<FileState>)];

type RecordResults = dyn Fn(&FileResults) -> Result<(), String> + Send + Sync;

/// Input for the review of a patch, and the record of its outcome.
#[derive(Clone)]
pub(crate) struct PatchReview {
    /// Whether the user chooses the changes, so each call needs approval even if the policy allows it.
    pub is_required: bool,
    /// Notes on the changes as a whole, such as the result of a check.
    pub notes: Vec<String>,
    record: Arc<RecordResults>,
}

impl PatchReview {
    /// Creates a review. `record` receives the chosen results before any file is changed. If it fails, no file is
    /// changed.
    pub(crate) fn new(
        (is_required, notes): (bool, Vec<String>),
        record: impl Fn(&FileResults) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { is_required, notes, record: Arc::new(record) }
    }

    pub(in crate::tools) fn record(&self, results: &FileResults) -> Result<(), String> {
        (self.record)(results)
    }
}

impl fmt::Debug for PatchReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PatchReview").field("is_required", &self.is_required).field("notes", &self.notes).finish_non_exhaustive()
    }
}
