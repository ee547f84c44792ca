//! Project instructions for a single directory.

use std::path::{Path, PathBuf};

/// Instructions that apply below one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub file: PathBuf,
    pub text: String,
}

/// Source of instructions. It reads the disk a few times for each directory above a file.
pub(crate) trait InstructionSource: Send + Sync {
    /// Returns the instructions of the directories between the workspace and this file, outermost first. Those of the workspace itself are
    /// already known.
    fn on_the_way_to(&self, file: &Path) -> Vec<Instructions>;
}
