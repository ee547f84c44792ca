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

impl InstructionFile {
    /// What tells its text from any other.
    pub fn digest(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }
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

/// What a project has of them.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The outermost first.
    pub files: Vec<InstructionFile>,
    /// Links that lead out of the project, and where to: not followed, only told.
    pub outside: Vec<(PathBuf, PathBuf)>,
}

/// Those of a project. Only for those who know that the project is trusted.
pub(super) fn of_project(workspace: &Path) -> Found {
    let root = repository(workspace).unwrap_or(workspace);
    let mut levels: Vec<&Path> = workspace.ancestors().take(LEVELS).take_while(|level| level.starts_with(root)).collect();
    levels.reverse();
    let mut found = Found::default();
    for level in levels {
        look(level, root, &mut found);
    }
    found
}

/// Those between a workspace and a file below it, the outermost first; not the workspace's own. Only for those who know that the
/// project is trusted.
pub fn on_the_way(workspace: &Path, file: &Path) -> Vec<InstructionFile> {
    let between = file.ancestors().skip(1).take(LEVELS).take_while(|level| *level != workspace && level.starts_with(workspace));
    let mut levels: Vec<&Path> = between.collect();
    levels.reverse();
    let mut found = Found::default();
    for level in levels {
        look(level, workspace, &mut found);
    }
    found.files
}

/// The file of one directory below a workspace. Only for those who know that it is trusted, or who do not obey it.
pub(super) fn in_directory(directory: &Path, workspace: &Path) -> Option<InstructionFile> {
    let mut found = Found::default();
    look(directory, workspace, &mut found);
    found.files.pop()
}

/// The file of one directory. A link in a project must not bring in a file from elsewhere, such as a key.
fn look(level: &Path, root: &Path, found: &mut Found) {
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

/// The nearest directory above that has a `.git`.
fn repository(workspace: &Path) -> Option<&Path> {
    workspace.ancestors().take(LEVELS).find(|level| level.join(".git").symlink_metadata().is_ok())
}

fn read(path: &Path) -> Option<InstructionFile> {
    // Nothing that is not a plain file is opened: a pipe would make the start wait.
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
