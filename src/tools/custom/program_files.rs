//! Finds the program of a custom tool and the files that it runs.

use crate::policy::{line, run_files};
use crate::sys::opener::on_path;
use crate::tools::custom::schema::ToolSchema;
use crate::tools::shell::file_hashes::{FileHashes, hash_file};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program found on this system, with its command line and the hashes of its files.
pub(super) struct ResolvedProgram {
    pub words: Vec<String>,
    pub print: FileHashes,
}

impl ToolProgram {
    /// Resolves every file that the command refers to by path to its real path.
    pub(super) fn find(&self, workspace: &Path) -> Result<ResolvedProgram, String> {
        let (mut words, mut files) = (Vec::new(), Vec::new());
        for (at, word) in self.command.iter().enumerate() {
            let by_path = if at == 0 { word.contains('/') } else { word.starts_with("./") };
            let found = match (at, by_path) {
                (_, true) => self.resolve(word),
                (0, false) => on_path(word).and_then(|found| found.canonicalize().ok()),
                _ => None,
            };
            let Some(found) = found else {
                if at == 0 {
                    let place = if by_path { format!("in `{}`", self.directory.display()) } else { "on the PATH".to_owned() };
                    return Err(format!("the program `{word}` is not {place}; install it there, or fix `command`"));
                }
                words.push(word.clone());
                continue;
            };
            let text = found.to_str().ok_or_else(|| format!("the real path of `{word}` is not valid UTF-8"))?;
            words.push(text.to_owned());
            let hash = hash_file(&found).map_err(|error| format!("cannot read `{word}`: {error}"))?;
            files.push((found, hash));
        }
        // Scripts passed to an interpreter in any form. Their paths are relative to the workspace, where the program
        // starts.
        for word in run_files(&line(&words)) {
            let Ok(found) = workspace.join(&word).canonicalize() else { continue };
            if found.is_file() && files.iter().all(|(known, _)| *known != found) {
                let hash = hash_file(&found).map_err(|error| format!("cannot read `{word}`: {error}"))?;
                files.push((found, hash));
            }
        }
        Ok(ResolvedProgram { words, print: FileHashes::new(files) })
    }

    /// Resolves a path relative to the manifest's directory or, failing that, relative to the root of the project or
    /// plugin.
    fn resolve(&self, word: &str) -> Option<PathBuf> {
        let places = std::iter::once(&self.directory).chain(&self.root);
        let found = places.filter_map(|place| place.join(word).canonicalize().ok()).find(|found| found.is_file());
        // The files of a project or plugin must be inside it, unless they are named by absolute path.
        found.filter(|found| self.root.as_ref().is_none_or(|root| found.starts_with(root) || Path::new(word).is_absolute()))
    }
}

pub(super) struct ToolProgram {
    pub command: Vec<String>,
    /// Directory that contains the manifest. Paths in `command` are relative to it.
    pub directory: PathBuf,
    /// Root of the project or plugin that contains the tool, or `None` for one of the user's own tools.
    pub root: Option<PathBuf>,
    pub by_words: bool,
    pub timeout_seconds: u64,
    /// Whether the program prints its output as JSON.
    pub json: bool,
    pub output: Option<Arc<ToolSchema>>,
    pub reads_only: bool,
    pub read_only_sandbox: bool,
    pub no_network: bool,
}
