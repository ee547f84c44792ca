//! Hashes of the files that a custom tool runs, taken when a call is checked. If their content changes, the tool is no
//! longer the same.

use crate::protocol::{ErrorCode, ToolError};
use crate::sys::path::open_file;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A tool's files with their hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct FileHashes {
    files: Vec<(PathBuf, String)>,
}

impl FileHashes {
    pub(in crate::tools) fn new(files: Vec<(PathBuf, String)>) -> Self {
        Self { files }
    }

    /// Returns a fingerprint of the tool's files together with its manifest.
    pub(in crate::tools) fn fingerprint_with(&self, manifest: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(manifest.as_bytes());
        for (path, hash) in &self.files {
            hasher.update(path.as_os_str().as_encoded_bytes()).update(b"\0").update(hash.as_bytes());
        }
        hasher.finalize().to_hex().chars().take(32).collect()
    }

    /// Returns whether the user trusted the project's files with exactly this content.
    pub(in crate::tools) fn is_known(&self, root: &Path, known: &BTreeMap<String, String>) -> bool {
        self.files
            .iter()
            .filter_map(|(path, hash)| Some((path.strip_prefix(root).ok()?, hash)))
            .all(|(path, hash)| known.get(path.to_string_lossy().as_ref()).is_some_and(|kept| kept == hash))
    }

    pub(in crate::tools) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Checks, as late as possible, that the files are still unchanged.
    pub(in crate::tools) fn check_unchanged(&self) -> Result<(), ToolError> {
        for (path, before) in &self.files {
            if hash_file(path).ok().as_ref() != Some(before) {
                let message = format!("`{}` changed since the call was checked, so nothing was run; try again", path.display());
                return Err(ToolError::new(ErrorCode::Conflict, message));
            }
        }
        Ok(())
    }
}

/// Returns the hash of a file.
pub(in crate::tools) fn hash_file(path: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(open_file(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}
