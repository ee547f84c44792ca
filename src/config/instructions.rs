//! Instruction files (`AGENTS.md`), which contain the user's and the project's instructions for all models.

mod imports;
mod path_rules;

pub(crate) use imports::{PUNCTUATION, imports};

use crate::policy::{ExcludedPaths, is_secret_name};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Maximum number of bytes to read from a file. Anything beyond that is ignored.
pub(crate) const FILE_BYTES: u64 = 64 << 10;
/// Maximum number of directory levels from the repository root down to the workspace.
const LEVELS: usize = 32;
/// Names of instruction files, in order of precedence. In each directory, only the first existing file is used.
const NAMES: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];
/// Directory that contains a project's rule files.
const RULES: &str = ".claude/rules";
const RULES_DEPTH: usize = 3;
/// Maximum number of instruction files, including imported ones.
const MAX_FILES: usize = 100;
/// Maximum number of entries in a directory of rule files.
const MAX_ENTRIES: usize = 1_000;
/// Maximum nesting depth of imports.
const IMPORT_DEPTH: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstructionFile {
    pub path: PathBuf,
    pub text: String,
    pub length: Length,
    /// Patterns of the files to which a rule file applies, relative to the workspace. Without patterns, it applies to
    /// all files.
    pub paths: Vec<String>,
}

impl InstructionFile {
    /// Returns a hash of the file's text.
    pub(crate) fn digest(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex().to_string()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Whole,
    /// The file is too long, so only its beginning was read.
    Cut,
}

/// Returns the user's instructions for all projects, if there are any.
pub(crate) fn user_instructions(config_dir: &Path) -> Option<InstructionFile> {
    read(&config_dir.join("AGENTS.md"))
}

/// Returns the user's own instructions for a project, given the directory with the user's files for it.
pub(crate) fn personal_instructions(project_dir: &Path) -> Option<InstructionFile> {
    read(&project_dir.join("AGENTS.md"))
}

/// Returns the path of the instruction file that applies in a directory or, if there is none, the path at which one
/// should be created. Does not read files outside the directory.
pub(crate) fn project_instruction_file(directory: &Path) -> PathBuf {
    let is_used = |path: &PathBuf| match path.canonicalize() {
        Ok(real) => !real.starts_with(directory) || read(&real).is_some(),
        Err(_) => path.symlink_metadata().is_ok(),
    };
    NAMES.map(|name| directory.join(name)).into_iter().find(is_used).unwrap_or_else(|| directory.join("AGENTS.md"))
}

/// A project's instruction files.
#[derive(Debug, Default)]
pub(super) struct InstructionFiles {
    /// Instruction files, outermost first. Each file is followed by those that it imports.
    pub files: Vec<InstructionFile>,
    /// Symlinks that lead outside the project, and their targets. aye reports them but does not follow them.
    pub outside: Vec<(PathBuf, PathBuf)>,
    /// Imports and rule files that were ignored, with the reasons.
    pub ignored: Vec<(String, String)>,
}

/// Returns a project's instruction files. Must be called only if the project is trusted.
pub(super) fn project_instructions(workspace: &Path) -> InstructionFiles {
    let root = repository(workspace).unwrap_or(workspace);
    let mut levels: Vec<&Path> = workspace.ancestors().take(LEVELS).take_while(|level| level.starts_with(root)).collect();
    levels.reverse();
    let mut found = InstructionFiles::default();
    for level in levels {
        found.read_level(level, root, workspace);
    }
    found.read_rules(&workspace.join(RULES), workspace, 0);
    found
}

/// Returns the instruction files in the directories between a workspace and a file inside it, outermost first. Those in
/// the workspace directory itself are not included. Must be called only if the project is trusted.
pub(crate) fn on_the_way(workspace: &Path, file: &Path) -> Vec<InstructionFile> {
    let between = file.ancestors().skip(1).take(LEVELS).take_while(|level| *level != workspace && level.starts_with(workspace));
    let mut levels: Vec<&Path> = between.collect();
    levels.reverse();
    let mut found = InstructionFiles::default();
    for level in levels {
        found.read_level(level, workspace, workspace);
    }
    found.files
}

/// Returns the instruction file in a directory inside a workspace, followed by its imports. The text must not be used
/// unless the project is trusted.
pub(super) fn in_directory(directory: &Path, workspace: &Path) -> Vec<InstructionFile> {
    let mut found = InstructionFiles::default();
    found.read_level(directory, workspace, workspace);
    found.files
}

/// Reads a file in the workspace as an instruction file. Returns `None` if it is empty, unreadable, or outside the
/// workspace.
pub(super) fn at_path(path: &Path, workspace: &Path) -> Option<InstructionFile> {
    let real = path.canonicalize().ok().filter(|real| real.starts_with(workspace))?;
    Some(InstructionFile { path: path.to_owned(), ..read(&real)? })
}

/// Returns whether the file name is that of an instruction file.
pub(crate) fn is_instruction_file(path: &Path) -> bool {
    NAMES.iter().any(|name| path.file_name().is_some_and(|found| found == *name))
}

impl InstructionFiles {
    /// Reads a directory's instruction file. Symlinks must not include files from outside the project, such as keys.
    fn read_level(&mut self, level: &Path, root: &Path, workspace: &Path) {
        for path in NAMES.map(|name| level.join(name)) {
            match path.canonicalize() {
                Ok(real) if !real.starts_with(root) => self.outside.push((path, real)),
                Ok(real) => {
                    if let Some(file) = read(&real) {
                        self.add(InstructionFile { path, ..file }, workspace, 0);
                        break;
                    }
                }
                Err(_) => {}
            }
        }
    }

    /// Adds a file, followed by those that it imports.
    fn add(&mut self, file: InstructionFile, workspace: &Path, depth: usize) {
        let (path, paths) = (file.path.clone(), file.paths.clone());
        let imported = imports(&file.text);
        self.files.push(file);
        for given in imported {
            self.add_import(&given, &path, &paths, workspace, depth + 1);
        }
    }

    /// Adds an imported file. The path is relative to the importing file, and must lead to a file in the workspace.
    fn add_import(&mut self, given: &str, from: &Path, paths: &[String], workspace: &Path, depth: usize) {
        let bare = given.trim_end_matches(PUNCTUATION);
        let name = format!("@{bare} in {}", from.strip_prefix(workspace).unwrap_or(from).display());
        let mut ignore = |why: &str| self.ignored.push((name.clone(), why.to_owned()));
        if given.starts_with('~') {
            return ignore("an import from a home directory");
        }
        if given.starts_with('/') {
            return ignore("an import by an absolute path");
        }
        let Some(directory) = from.parent() else { return };
        let existing = [given, bare].into_iter().find_map(|given| {
            let path = normalize_path(directory, given)?;
            // Do not access paths outside the workspace.
            (!path.starts_with(workspace) || path.symlink_metadata().is_ok()).then_some(path)
        });
        // This is probably a name, such as that of a person or a package.
        let Some(path) = existing else { return };
        if !path.starts_with(workspace) {
            return ignore("an import from outside the workspace");
        }
        let Ok(real) = path.canonicalize() else { return };
        if !real.starts_with(workspace) {
            return self.outside.push((path, real));
        }
        if real.is_dir() || self.files.iter().any(|file| file.path == path || file.path == real) {
            return;
        }
        let has_secret_name =
            [&path, &real].into_iter().any(|path| path.file_name().is_some_and(|name| is_secret_name(&name.to_string_lossy())));
        let is_internal = real.strip_prefix(workspace).is_ok_and(|below| below.starts_with(".git"));
        let list = crate::sys::ignore_files::own_list(workspace).ok().flatten();
        if list.is_some_and(|text| ExcludedPaths::parse(workspace, &text).excludes(&real)) {
            return ignore("an import of a file that .ayeignore excludes");
        }
        if has_secret_name || is_internal {
            return ignore("an import of a file that may contain secrets");
        }
        if depth > IMPORT_DEPTH {
            return ignore(&format!("more than {IMPORT_DEPTH} imports deep"));
        }
        if self.files.len() >= MAX_FILES {
            return ignore(&format!("more than {MAX_FILES} instruction files"));
        }
        match read(&real) {
            Some(file) if file.text.contains('\0') => ignore("an import of a file that is not text"),
            Some(file) => self.add(InstructionFile { path, paths: paths.to_vec(), ..file }, workspace, depth),
            None => {}
        }
    }

    /// Adds the rule files in a directory, sorted by name.
    fn read_rules(&mut self, directory: &Path, workspace: &Path, depth: usize) {
        match directory.canonicalize() {
            Ok(real) if !real.starts_with(workspace) => return self.outside.push((directory.to_owned(), real)),
            Ok(_) => {}
            Err(_) => return,
        }
        let Ok(entries) = crate::sys::path::entries(directory) else { return };
        let mut paths: Vec<PathBuf> =
            entries.take(MAX_ENTRIES).filter_map(|entry| Some(directory.join(entry.ok()?.file_name()))).collect();
        paths.sort();
        for path in paths {
            // A symlink to a directory could form a cycle.
            let is_directory = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
            if is_directory && depth < RULES_DEPTH {
                self.read_rules(&path, workspace, depth + 1);
            } else if !is_directory && path.extension().is_some_and(|ending| ending == "md") {
                self.read_rule(path, workspace);
            }
        }
    }

    fn read_rule(&mut self, path: PathBuf, workspace: &Path) {
        let name = path.strip_prefix(workspace).unwrap_or(&path).display().to_string();
        match path.canonicalize() {
            Ok(real) if !real.starts_with(workspace) => self.outside.push((path, real)),
            Ok(_) if self.files.len() >= MAX_FILES => {
                self.ignored.push((name, format!("more than {MAX_FILES} instruction files")));
            }
            Ok(real) => {
                let Some(file) = read(&real) else { return };
                match path_rules::patterns(&file.text) {
                    Ok(paths) => self.add(InstructionFile { path, paths, ..file }, workspace, 0),
                    Err(why) => self.ignored.push((name, why)),
                }
            }
            Err(_) => {}
        }
    }
}

/// Resolves a path against a directory without accessing the disk. Returns `None` if the path is absolute, leads above
/// the root, or is the directory itself.
fn normalize_path(directory: &Path, given: &str) -> Option<PathBuf> {
    let mut path = directory.to_owned();
    for component in Path::new(given).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (path != directory).then_some(path)
}

/// Returns the nearest directory that contains `.git`, starting with the workspace itself.
fn repository(workspace: &Path) -> Option<&Path> {
    workspace.ancestors().take(LEVELS).find(|level| level.join(".git").symlink_metadata().is_ok())
}

fn read(path: &Path) -> Option<InstructionFile> {
    // Open only regular files, because a pipe would block the start.
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
    (!text.trim().is_empty()).then(|| InstructionFile { path: path.to_owned(), text, length, paths: Vec::new() })
}
