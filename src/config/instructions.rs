//! AGENTS.md: what a person and a project want every model to be told.

use std::io::Read;
use std::path::{Path, PathBuf};

/// Of one file; the rest of a longer one is not read.
const FILE_BYTES: u64 = 64 << 10;
/// From the root of the repository down to the workspace.
const LEVELS: usize = 32;
/// The first that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    pub path: PathBuf,
    pub text: String,
    pub length: Length,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Whole,
    /// Longer than what is read.
    Cut,
}

/// The person's own, for every project.
pub fn of_person(config_dir: &Path) -> Option<InstructionFile> {
    read(&config_dir.join("AGENTS.md"))
}

/// Those of a project, the outermost first. Only for those who know that the project is trusted.
pub(super) fn of_project(workspace: &Path) -> Vec<InstructionFile> {
    let root = repository(workspace).unwrap_or(workspace);
    let mut levels: Vec<&Path> = workspace.ancestors().take(LEVELS).take_while(|level| level.starts_with(root)).collect();
    levels.reverse();
    levels.into_iter().filter_map(|level| NAMES.iter().find_map(|name| within(root, &level.join(name)))).collect()
}

/// The nearest directory above that has a `.git`.
fn repository(workspace: &Path) -> Option<&Path> {
    workspace.ancestors().take(LEVELS).find(|level| level.join(".git").symlink_metadata().is_ok())
}

/// A link in a project must not bring in a file from elsewhere, such as a key.
fn within(root: &Path, path: &Path) -> Option<InstructionFile> {
    let real = path.canonicalize().ok()?;
    if !real.starts_with(root) {
        return None;
    }
    read(&real).map(|file| InstructionFile { path: path.to_owned(), ..file })
}

fn read(path: &Path) -> Option<InstructionFile> {
    // Nothing that is not a plain file is opened: a pipe would make the start wait.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let length = if bytes.len() as u64 > FILE_BYTES { Length::Cut } else { Length::Whole };
    if length == Length::Cut {
        bytes.truncate(FILE_BYTES as usize);
        let whole = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        bytes.truncate(bytes.len() - whole);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then(|| InstructionFile { path: path.to_owned(), text, length })
}
