//! Tracks changes that other programs make in the workspace.

use crate::sys::file::FileStamp;
use crate::sys::tree_watch::TreeWatch;
use std::collections::HashMap;
use std::path::PathBuf;

/// Known changes that other programs made in the workspace.
#[derive(Default)]
pub(in crate::tools) struct ExternalChanges {
    pub tracking: Tracking,
    /// Whether changes made before this process started have been looked for.
    pub caught_up: bool,
    /// Number of changed files that have exceeded the limits of the checks so far.
    pub left_out: usize,
}

/// State of change tracking.
#[derive(Default)]
pub(in crate::tools) enum Tracking {
    #[default]
    NotYet,
    Known {
        files: HashMap<PathBuf, FileStamp>,
        /// Directory watch, or `None` if the whole tree is scanned instead.
        watch: Option<TreeWatch>,
    },
    /// Tracking is impossible, for this reason.
    Blind(String),
}

impl ExternalChanges {
    /// Returns notes about what change tracking does not detect.
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
