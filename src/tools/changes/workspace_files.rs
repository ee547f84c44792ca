//! Lists the files and directories below a root, except those that git ignores.

use crate::protocol::{Place, Target, ToolError};
use crate::tools::blocking::off_thread;
use crate::tools::change_log::Directories;
use crate::tools::search::skipped::SkippedPlaces;
use crate::tools::search::walk::{Depth, WalkScope, walk};
use crate::tools::settings::ToolSettings;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Lists every file and symlink below a root that git does not ignore, as paths relative to the root.
pub(in crate::tools) async fn files(
    settings: &Arc<ToolSettings>,
    root: &Path,
    kill: &CancellationToken,
) -> Result<Vec<PathBuf>, ToolError> {
    Ok(entries(settings, root, kill).await?.0)
}

/// Lists the same files and symlinks as [`files`], and the directories as well.
pub(in crate::tools) async fn entries(
    settings: &Arc<ToolSettings>,
    root: &Path,
    kill: &CancellationToken,
) -> Result<(Vec<PathBuf>, Directories), ToolError> {
    let (settings, root, kill) = (Arc::clone(settings), root.to_owned(), kill.clone());
    off_thread(move || {
        let target = Target { given: ".".to_owned(), real: root.clone(), place: Place::Directory };
        let found = Mutex::new((Vec::new(), Directories::new()));
        walk(&target, &settings, WalkScope::default_scope(Depth::All), &SkippedPlaces::new(), &kill, || {
            |entry: &ignore::DirEntry| {
                let is_directory = entry.file_type().is_none_or(|kind| kind.is_dir());
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                if is_directory {
                    let mode = entry.metadata().map_or(0o777, |metadata| metadata.mode());
                    found.1.insert(entry.path().to_owned(), mode & 0o7777);
                } else if let Ok(below) = entry.path().strip_prefix(&root) {
                    found.0.push(below.to_owned());
                }
            }
        })?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    })
    .await?
}
