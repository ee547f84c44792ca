//! Tracking of changes that other programs make in the workspace.

use crate::sys::file::FileStamp;
use crate::sys::tree_watch::TreeWatch;
use std::collections::HashMap;
use std::path::PathBuf;

/// Tracked changes of other programs in the workspace.
#[derive(Default)]
pub(in crate::tools) struct ExternalChanges {
    pub tracking: Tracking,
    /// Whether changes from before this process started have been detected.
    pub caught_up: bool,
    /// Number of changed files beyond the limit of one check.
    pub left_out: usize,
}

/// The state of tracking.
#[derive(Default)]
pub(in crate::tools) enum Tracking {
    #[default]
    NotYet,
    Known {
        files: HashMap<PathBuf, FileStamp>,
        /// Directory watch; `None` if the whole tree is scanned instead.
        watch: Option<TreeWatch>,
    },
    /// Tracking is impossible, with the reason.
    Blind(String),
}

impl ExternalChanges {
    /// Returns notes on the limits of change tracking.
    pub(in crate::tools) fn notes(&self) -> Vec<String> {
        let mut words = Vec::new();
        match &self.tracking {
            Tracking::Blind(why) => words.push(format!("changes by other programs are not tracked: {why}")),
            Tracking::Known { watch: None, .. } => words.push(
                "the workspace has too many directories to watch; aye checks for changes by other programs only on request"
                    .to_owned(),
            ),
            Tracking::Known { .. } | Tracking::NotYet => {}
        }
        if self.left_out > 0 {
            words.push(format!("{} more files were changed by other programs", self.left_out));
        }
        words
    }
}
