//! Instructions of a project for one of its directories.

use std::path::{Path, PathBuf};

/// Instructions that hold below one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guide {
    pub file: PathBuf,
    pub text: String,
}

/// Answers from the disk: a few looks for each directory above a file.
pub trait Guidance: Send + Sync {
    /// Those of the directories between the workspace and this file, the outermost first; the workspace's own are known already.
    fn on_the_way_to(&self, file: &Path) -> Vec<Guide>;
}
