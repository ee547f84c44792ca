//! Instruction files (AGENTS.md): text that the user and the project pass to every model.

use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum bytes read from a file; the rest of a longer file is ignored.
const FILE_BYTES: u64 = 64 << 10;
/// Maximum number of levels from the root of the repository down to the workspace.
const LEVELS: usize = 32;
/// File names by precedence; only the first existing one is used.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstructionFile {
    pub path: PathBuf,
    pub text: String,
    pub length: Length,
}

impl InstructionFile {
    /// Returns a hash of the text.
    pub(crate) fn digest(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Whole,
    /// The file is longer than the part that was read.
    Cut,
}

/// Returns the user's own instructions, which apply to all projects.
pub(crate) fn of_person(config_dir: &Path) -> Option<InstructionFile> {
    read(&config_dir.join("AGENTS.md"))
}

/// The instruction files of a project.
#[derive(Debug, Default)]
pub(super) struct InstructionFiles {
    /// The files, outermost first.
    pub files: Vec<InstructionFile>,
    /// Symlinks that lead out of the project, with their targets: reported, but not followed.
    pub outside: Vec<(PathBuf, PathBuf)>,
}

/// Returns the instruction files of a project. Call it only if the project is trusted.
pub(super) fn of_project(workspace: &Path) -> InstructionFiles {
    let root = repository(workspace).unwrap_or(workspace);
    let mut levels: Vec<&Path> = workspace.ancestors().take(LEVELS).take_while(|level| level.starts_with(root)).collect();
    levels.reverse();
    let mut found = InstructionFiles::default();
    for level in levels {
        read_level(level, root, &mut found);
    }
    found
}

/// Returns the instruction files between a workspace and a file below it, outermost first, without those of the
/// workspace itself. Call it only if the project is trusted.
pub(crate) fn on_the_way(workspace: &Path, file: &Path) -> Vec<InstructionFile> {
    let between = file.ancestors().skip(1).take(LEVELS).take_while(|level| *level != workspace && level.starts_with(workspace));
    let mut levels: Vec<&Path> = between.collect();
    levels.reverse();
    let mut found = InstructionFiles::default();
    for level in levels {
        read_level(level, workspace, &mut found);
    }
    found.files
}

/// Returns the instruction file of one directory below a workspace. Its text must not be used unless the project is
/// trusted.
pub(super) fn in_directory(directory: &Path, workspace: &Path) -> Option<InstructionFile> {
    let mut found = InstructionFiles::default();
    read_level(directory, workspace, &mut found);
    found.files.pop()
}

/// Reads the instruction file of a directory. A symlink in a project must not include a file from elsewhere, such as a
/// key.
fn read_level(level: &Path, root: &Path, found: &mut InstructionFiles) {
    for path in NAMES.map(|name| level.join(name)) {
        match path.canonicalize() {
            Ok(real) if !real.starts_with(root) => found.outside.push((path, real)),
            Ok(real) => {
                if let Some(file) = read(&real) {
                    found.files.push(InstructionFile { path, ..file });
                    break;
                }
            }
            Err(_) => {}
        }
    }
}

/// Returns the nearest parent directory with a `.git`.
fn repository(workspace: &Path) -> Option<&Path> {
    workspace.ancestors().take(LEVELS).find(|level| level.join(".git").symlink_metadata().is_ok())
}

fn read(path: &Path) -> Option<InstructionFile> {
    // Opens regular files only: a pipe would block the start.
    let file = crate::sys::path::open_file(&path.canonicalize().ok()?).ok()?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let length = if bytes.len() as u64 > FILE_BYTES { Length::Cut } else { Length::Whole };
    if length == Length::Cut {
        bytes.truncate(FILE_BYTES as usize);
        let whole = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        bytes.truncate(bytes.len() - whole);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then(|| InstructionFile { path: path.to_owned(), text, length })
}
