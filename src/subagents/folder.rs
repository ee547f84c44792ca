//! User folders that can contain agents.

use super::agent_file::{AgentFile, AgentFormat};
use super::definition::AgentOrigin;
use std::path::PathBuf;

/// Maximum number of agents per folder.
const MAX_AGENTS: usize = 200;
/// Maximum number of directory entries examined for agents.
const MAX_ENTRIES: usize = 10_000;
/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 3;
/// Maximum number of folders to search, including subfolders.
const MAX_FOLDERS: usize = 100;
/// Maximum size of an agent file, in bytes.
const FILE_BYTES: u64 = 256 << 10;

/// Folder that contains agents, located anywhere on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentFolder {
    pub path: PathBuf,
    /// Display path, such as `~/.claude/agents`.
    pub shown: String,
    pub format: AgentFormat,
    pub origin: AgentOrigin,
}

impl AgentFolder {
    /// Reads the agent files in the folder and its subfolders, sorted by name. Also returns a message if the limit
    /// was exceeded.
    pub(crate) fn read(&self) -> (Vec<AgentFile>, Option<String>) {
        let mut names = Vec::new();
        let mut folders = vec![(self.path.clone(), String::new(), 0)];
        let mut at = 0;
        while let Some((path, below, depth)) = folders.get(at).cloned() {
            at += 1;
            // The user's folder may itself be a symlink.
            let Ok(real) = path.canonicalize() else { continue };
            let Ok(entries) = crate::sys::path::entries(&real) else { continue };
            for entry in entries.take(MAX_ENTRIES).filter_map(Result::ok) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with('.') {
                    continue;
                }
                let inner = path.join(&name);
                // A symlink to a folder could form a cycle, so it is not followed.
                let is_folder = inner.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
                if is_folder && depth < MAX_DEPTH && folders.len() < MAX_FOLDERS {
                    folders.push((inner, format!("{below}{name}/"), depth + 1));
                } else if !is_folder && AgentFormat::of_file(&name) == Some(self.format) {
                    names.push(format!("{below}{name}"));
                }
            }
        }
        names.sort();
        let rest = names.len().saturating_sub(MAX_AGENTS);
        names.truncate(MAX_AGENTS);
        let limit = (rest > 0).then(|| format!("{rest} agents in `{}` are ignored: the limit is {MAX_AGENTS}", self.shown));
        (names.iter().map(|name| self.file(name)).collect(), limit)
    }

    /// Reads a single file in the folder.
    pub(crate) fn file(&self, name: &str) -> AgentFile {
        let path = self.path.join(name);
        let content = match crate::sys::file::read(&path.canonicalize().unwrap_or(path), FILE_BYTES) {
            Ok(bytes) => Ok(bytes),
            Err(crate::sys::file::ReadError::TooLarge { bytes, .. }) => {
                let size = crate::protocol::size(bytes);
                Err(format!("the file is too large ({size}); the limit is {} KB", FILE_BYTES >> 10))
            }
            Err(crate::sys::file::ReadError::Io(error)) => Err(format!("cannot read the file: {error}")),
        };
        AgentFile { shown: format!("{}/{name}", self.shown), content, origin: self.origin }
    }
}
