//! Gives tools access to files that are open in the editor. Files are identified by canonical path and must be in one
//! of the session's directories.

use crate::acp::{EditorBuffers, SessionOpening};
use crate::ports;
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use std::path::{Path, PathBuf};

pub(crate) struct EditorPaths {
    buffers: EditorBuffers,
    /// Session directories, each with its canonical path and its path in the editor.
    directories: Vec<(PathBuf, PathBuf)>,
}

impl EditorPaths {
    /// Returns access to the buffers of the editor that requested the session, or `None` if the editor does not share
    /// its buffers.
    pub(crate) fn for_opening(asked: &SessionOpening) -> Option<Self> {
        let buffers = asked.buffers.clone()?;
        let real = |given: &PathBuf| given.canonicalize().ok().map(|real| (real, given.clone()));
        let directories = std::iter::once(&asked.directory).chain(&asked.more).filter_map(real).collect();
        Some(Self { buffers, directories })
    }

    fn editor_path(&self, real: &Path) -> Option<PathBuf> {
        editor_path_in(&self.directories, real)
    }
}

/// Returns a file's path in the editor, based on the innermost directory that contains the file.
fn editor_path_in(directories: &[(PathBuf, PathBuf)], real: &Path) -> Option<PathBuf> {
    let within =
        |(own, given): &(PathBuf, PathBuf)| real.strip_prefix(own).ok().map(|rest| (own.components().count(), given.join(rest)));
    directories.iter().filter_map(within).max_by_key(|(depth, _)| *depth).map(|(_, path)| path)
}

impl ports::Buffers for EditorPaths {
    fn text(&self, real: &Path) -> BoxFuture<'static, Option<String>> {
        let Some(path) = self.editor_path(real) else { return ready(None).boxed() };
        let buffers = self.buffers.clone();
        async move { buffers.text(path).await }.boxed()
    }

    fn send_text(&self, real: &Path, text: String) -> BoxFuture<'static, bool> {
        let Some(path) = self.editor_path(real) else { return ready(false).boxed() };
        let buffers = self.buffers.clone();
        async move { buffers.send_text(path, text).await }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_mapped_to_editor_directories_and_outside_paths_to_none() {
        let directories = [("/data/p".into(), "/home/me/p".into()), ("/data/p/lib".into(), "/home/me/lib".into())];
        let name = |real: &str| editor_path_in(&directories, Path::new(real)).map(|path| path.display().to_string());
        assert_eq!(name("/data/p/a.rs").as_deref(), Some("/home/me/p/a.rs"));
        assert_eq!(name("/data/p/lib/b.rs").as_deref(), Some("/home/me/lib/b.rs"));
        assert_eq!(name("/data/p2/a.rs"), None);
        assert_eq!(name("/etc/passwd"), None);
    }
}
