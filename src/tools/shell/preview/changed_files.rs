//! Files that a previewed command changed, for use by language servers.

use super::run::PreviewedCommand;
use crate::ports::ProposedText;
use crate::sys::overlay::NodeKind;
use std::path::{Path, PathBuf};

/// Maximum number of files to return.
const MAX_FILES: usize = 20;
/// Maximum file size in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A changed file: its path and, if it still exists, the path at which its new content is found.
pub(in crate::tools) struct PreviewFile {
    path: PathBuf,
    is_known: bool,
    new: Option<PathBuf>,
}

impl PreviewedCommand {
    /// Returns the changed files that meet a condition, except build output.
    pub(in crate::tools) fn changed_files(&self, is_wanted: &dyn Fn(&Path) -> bool) -> Vec<PreviewFile> {
        let mut files = Vec::new();
        for changes in &self.changes {
            for change in changes.entries().iter().filter(|change| !change.is_only_touched()) {
                let is_file = |kind: Option<NodeKind>| kind == Some(NodeKind::File);
                let (before, after) = (change.before.map(|node| node.kind), change.after.map(|node| node.kind));
                let path = changes.old(&change.path);
                let is_build = self.build.iter().any(|build| path.starts_with(build));
                if !(is_file(before) || is_file(after)) || is_build || !is_wanted(&path) {
                    continue;
                }
                let new = is_file(after).then(|| changes.new_content(&change.path));
                files.push(PreviewFile { path, is_known: is_file(before), new });
                if files.len() == MAX_FILES {
                    return files;
                }
            }
        }
        files
    }
}

impl PreviewFile {
    /// Returns the text before and after the change. Returns `None` if either side is not text or is too large.
    pub(in crate::tools) fn text(&self) -> Option<ProposedText> {
        let read = |path: &Path| String::from_utf8(crate::sys::file::read(path, MAX_BYTES).ok()?).ok();
        let before = if self.is_known { Some(read(&self.path)?) } else { None };
        let after = match &self.new {
            Some(new) => Some(read(new)?),
            None => None,
        };
        Some(ProposedText { path: self.path.clone(), before, after })
    }
}
