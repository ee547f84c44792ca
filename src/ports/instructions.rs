//! Project instructions for a single directory, or for some files.

use std::path::{Path, PathBuf};

/// Instructions that apply to a part of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub file: PathBuf,
    /// The part, as a phrase for the model: `everything below /w/src`.
    pub part: String,
    pub text: String,
}

/// Source of instructions. It reads the disk a few times for each directory above a file.
pub(crate) trait InstructionSource: Send + Sync {
    /// Returns the instructions of the directories between the workspace and this file, outermost first, and the path rules that
    /// match this file. Those of the workspace itself are already known.
    fn instructions_for(&self, file: &Path) -> Vec<Instructions>;
}
