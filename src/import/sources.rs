//! Files of another agent. Only the agent's own directories are read, within limits.

use crate::config::Environment;
use crate::host::other_agents::Agent;
use crate::text::abbreviate_home;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Maximum size of a file in bytes.
pub(super) const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of files in a directory of commands.
const MAX_FILES: usize = 500;
const MAX_ENTRIES: usize = 5_000;
const DEPTH: usize = 3;

/// Access to the files that an agent has for a user and a workspace.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The agent's directory in the user's home directory.
    user: PathBuf,
    /// The agent's directory in the project.
    project: PathBuf,
    home: PathBuf,
    workspace: PathBuf,
    /// Files that have been read, as shown to the user.
    read: Vec<String>,
    /// Files that could not be read, each with the reason.
    problems: Vec<(String, String)>,
}

/// Directory to which a file name is relative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// The agent's directory in the user's home directory.
    User,
    /// The agent's directory in the project.
    Project,
    Home,
    Workspace,
}

/// File that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFile {
    /// Path as shown to the user.
    pub place: String,
    pub text: String,
}

impl Sources {
    pub(crate) fn new(agent: Agent, home: &Path, workspace: &Path, environment: &Environment) -> Self {
        Self {
            user: agent.directory(home, environment),
            project: workspace.join(agent.project_directory()),
            home: home.to_owned(),
            workspace: workspace.to_owned(),
            read: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Returns the files that have been read so far.
    pub(crate) fn read(&self) -> &[String] {
        &self.read
    }

    /// Returns the files that could not be read, each with the reason.
    pub(crate) fn problems(&self) -> &[(String, String)] {
        &self.problems
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Records that a file is malformed.
    pub(super) fn report(&mut self, place: &str, reason: impl Into<String>) {
        self.problems.push((place.to_owned(), reason.into()));
    }

    /// Reads a file. Returns `None` if it does not exist or cannot be read, in which case the error is reported.
    pub(super) fn file(&mut self, root: Root, name: &str) -> Option<SourceFile> {
        self.read_limited(root, name, MAX_BYTES)
    }

    /// Reads a file of up to `most` bytes.
    pub(super) fn read_limited(&mut self, root: Root, name: &str, most: u64) -> Option<SourceFile> {
        let path = self.directory(root).join(name);
        if self.is_inside_twice(root) {
            return None;
        }
        self.read_at(root, &path, most)
    }

    /// Parses a JSON file. Returns `None` if it does not exist or is malformed, in which case this is reported.
    pub(super) fn json(
        &mut self,
        root: Root,
        name: &str,
        most: u64,
    ) -> Option<(String, serde_json::Map<String, serde_json::Value>)> {
        let file = self.read_limited(root, name, most)?;
        match super::document::json(&file.text) {
            Ok(serde_json::Value::Object(entries)) => Some((file.place, entries)),
            Ok(_) => {
                self.report(&file.place, "line 1: expected an object; none of it is imported");
                None
            }
            Err(why) => {
                self.report(&file.place, format!("{why}; none of it is imported"));
                None
            }
        }
    }

    /// Returns whether this file or directory exists.
    pub(super) fn exists(&self, root: Root, name: &str) -> bool {
        !self.is_inside_twice(root) && self.directory(root).join(name).symlink_metadata().is_ok()
    }

    /// Returns whether the project's `.mcp.json`, which aye reads itself, contains a server with this name.
    pub(super) fn has_project_server(&self, name: &str) -> bool {
        let path = self.directory(Root::Workspace).join(".mcp.json");
        let text = contents(&path, MAX_BYTES).ok().filter(|_| self.is_within(Root::Workspace, &path));
        let document = text.and_then(|text| super::document::json(&text).ok());
        document.is_some_and(|document| document.get("mcpServers").is_some_and(|servers| servers.get(name).is_some()))
    }

    /// Returns the path of a file as shown to the user.
    pub(super) fn display_path(&self, root: Root, name: &str) -> String {
        abbreviate_home(&self.directory(root).join(name), &self.home)
    }

    /// Reads all files with this extension in a directory and its subdirectories, sorted by name. Each file is returned
    /// together with its path relative to the directory, without the extension.
    pub(super) fn files_below(&mut self, root: Root, directory: &str, extension: &str) -> Vec<(String, SourceFile)> {
        let directory = self.directory(root).join(directory);
        if self.is_inside_twice(root) || !self.is_within(root, &directory) {
            return Vec::new();
        }
        let mut paths = Vec::new();
        collect(&directory, extension, 0, &mut paths);
        if paths.len() > MAX_FILES {
            let place = abbreviate_home(&directory, &self.home);
            self.report(&place, format!("more than {MAX_FILES} files; the others were not read"));
            paths.truncate(MAX_FILES);
        }
        let named = |path: PathBuf| {
            let name = path.strip_prefix(&directory).ok()?.with_extension("");
            let file = self.read_at(root, &path, MAX_BYTES)?;
            Some((name.to_str()?.to_owned(), file))
        };
        paths.into_iter().filter_map(named).collect()
    }

    /// Returns whether the agent's project directory is the same as its user directory, in which case the files belong
    /// to the user.
    fn is_inside_twice(&self, root: Root) -> bool {
        root == Root::Project
            && self.project.canonicalize().is_ok_and(|real| self.user.canonicalize().is_ok_and(|own| own == real))
    }

    fn directory(&self, root: Root) -> PathBuf {
        match root {
            Root::User => self.user.clone(),
            Root::Project => self.project.clone(),
            Root::Home => self.home.clone(),
            Root::Workspace => self.workspace.clone(),
        }
    }

    /// Returns whether a path is inside its root once symlinks have been resolved. In addition, the agent's project
    /// directory must be inside the workspace, and files in shared directories must not be symlinks.
    fn is_within(&self, root: Root, path: &Path) -> bool {
        let (Ok(real), Ok(real_root)) = (path.canonicalize(), self.directory(root).canonicalize()) else { return false };
        match root {
            Root::User => real.starts_with(&real_root),
            Root::Project => {
                let workspace = self.workspace.canonicalize();
                real.starts_with(&real_root) && workspace.is_ok_and(|workspace| real_root.starts_with(workspace))
            }
            Root::Home | Root::Workspace => path.file_name().is_some_and(|name| real == real_root.join(name)),
        }
    }

    fn read_at(&mut self, root: Root, path: &Path, most: u64) -> Option<SourceFile> {
        let place = abbreviate_home(path, &self.home);
        match path.symlink_metadata() {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return None,
            Err(error) => {
                self.report(&place, format!("cannot be read: {error}"));
                return None;
            }
        }
        if !self.is_within(root, path) {
            self.report(&place, "a symlink that points outside the agent's directory; not read");
            return None;
        }
        match contents(path, most) {
            Ok(text) => {
                self.read.push(place.clone());
                Some(SourceFile { place, text })
            }
            Err(why) => {
                self.report(&place, why);
                None
            }
        }
    }
}

fn contents(path: &Path, most: u64) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let real = path.canonicalize().map_err(unreadable)?;
    // Open only regular files, because a pipe would block.
    let file = crate::sys::path::open_file(&real).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > most {
        return Err(format!("larger than {} MB; not read", most >> 20));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count();
        format!("line {line} is not UTF-8 text; not read")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n"))
}

fn collect(directory: &Path, extension: &str, depth: usize, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = crate::sys::path::entries(directory) else { return };
    let mut entries: Vec<PathBuf> =
        entries.take(MAX_ENTRIES).filter_map(|entry| Some(directory.join(entry.ok()?.file_name()))).collect();
    entries.sort();
    for path in entries {
        // A symlink to a directory could form a cycle.
        let is_directory = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_directory && depth < DEPTH {
            collect(&path, extension, depth + 1, paths);
        } else if !is_directory && path.extension().is_some_and(|found| found == extension) && paths.len() <= MAX_FILES {
            paths.push(path);
        }
    }
}
