//! Project instructions that apply to a directory or to certain files.

use std::path::{Path, PathBuf};

/// Instructions for one part of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub file: PathBuf,
    /// The part of the project, as a phrase for the model, such as `everything below /w/src`.
    pub part: String,
    pub text: String,
}

/// Source of project instructions. Each lookup reads a few files in every directory above the given file.
pub(crate) trait InstructionSource: Send + Sync {
    /// Returns the instructions from the directories between the workspace and this file, outermost first, followed
    /// by the path rules that match the file. The workspace's own instructions are excluded.
    fn instructions_for(&self, file: &Path) -> Vec<Instructions>;
}
