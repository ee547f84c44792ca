//! Project instructions for a directory or for certain files.

use std::path::{Path, PathBuf};

/// Instructions that apply to one part of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub file: PathBuf,
    /// Part of the project, as a phrase for the model: `everything below /w/src`.
    pub part: String,
    pub text: String,
}

/// Source of instructions. Reads a few files in each directory above the given file.
pub(crate) trait InstructionSource: Send + Sync {
    /// Returns the instructions of the directories between the workspace and this file, outermost first, and the path
    /// rules that match the file. Excludes the instructions of the workspace itself.
    fn instructions_for(&self, file: &Path) -> Vec<Instructions>;
}
