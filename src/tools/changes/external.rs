//! Detects changes that other programs make in the workspace. Records the state of the files when the first task
//! starts, and later finds those that have been modified.

use super::{ToolSettings, workspace_files};
use crate::ports::{CheckpointError, KnownPath, StoredState};
use crate::protocol::{ChangedBy, Place, Target};
use crate::sys::file::FileStamp;
use crate::sys::tree_watch::{TouchedPaths, TreeWatch};
use crate::tools::change_log::{ChangeLog, ExternalChanges, Tracking};
use crate::tools::search::skipped::SkippedPlaces;
use crate::tools::search::walk::{Depth, WalkScope, walk};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Maximum number of directories to watch. Watches are shared with the user's other programs, and many systems allow
/// 8192 in total.
const MAX_DIRECTORIES: usize = 4096;
/// Maximum number of files to track. In a larger tree, only changes made by aye itself are reported.
const MAX_FILES: usize = 200_000;
/// Maximum number of paths to record at once.
const MAX_TOUCHED: usize = 5_000;

/// The files and directories below a root, except those that git ignores.
#[derive(Default)]
struct WorkspaceTree {
    files: HashMap<PathBuf, FileStamp>,
    directories: BTreeSet<PathBuf>,
}

/// Records the state of the files. Only the first call has an effect.
pub(super) async fn begin(external: &mut ExternalChanges, settings: &Arc<ToolSettings>) {
    if let Tracking::NotYet = external.tracking {
        let (settings, root) = (Arc::clone(settings), settings.workspace.clone());
        let begun = tokio::task::spawn_blocking(move || start_tracking(&root, &settings)).await;
        external.tracking = begun.unwrap_or_else(|error| Tracking::Blind(error.to_string()));
    }
}

/// Records which files have changed since the last call.
pub(super) async fn record_touched(
    external: &mut ExternalChanges,
    log: &ChangeLog,
    settings: &Arc<ToolSettings>,
) -> Result<(), CheckpointError> {
    if log.is_resumed() && !std::mem::replace(&mut external.caught_up, true) {
        catch_up(log, settings).await?;
    }
    let (files, watch) = match std::mem::take(&mut external.tracking) {
        Tracking::Known { files, watch } => (files, watch),
        other => {
            external.tracking = other;
            return Ok(());
        }
    };
    let for_look = Arc::clone(settings);
    let looked = tokio::task::spawn_blocking(move || {
        let mut known = FileIndex { files, watch };
        let touched = known.take_touched(&for_look);
        (known, touched)
    })
    .await;
    let touched = match looked {
        Ok((FileIndex { files, watch }, Ok(touched))) => {
            external.tracking = Tracking::Known { files, watch };
            touched
        }
        Ok((_, Err(why))) => {
            external.tracking = Tracking::Blind(why);
            return Ok(());
        }
        Err(error) => {
            external.tracking = Tracking::Blind(error.to_string());
            return Ok(());
        }
    };
    if touched.is_empty() {
        return Ok(());
    }
    external.left_out += touched.len().saturating_sub(MAX_TOUCHED);
    let touched: Vec<_> = touched.into_iter().take(MAX_TOUCHED).collect();
    // If a command is running, it is the more likely author.
    let spans = log.baselines().open_spans(log.session().clone()).await?;
    let by = if spans.is_empty() { ChangedBy::Outside } else { ChangedBy::Command };
    let noted = baselines(touched, log, settings).await?;
    log.baselines().note(log.owner(), by, noted).await
}

/// Records changes that were made while no process had this session open, by comparing the files with the session's
/// first snapshots.
async fn catch_up(log: &ChangeLog, settings: &Arc<ToolSettings>) -> Result<(), CheckpointError> {
    for since in log.baselines().first(log.session().clone()).await? {
        let files = workspace_files::files(settings, &since.root, &CancellationToken::new()).await;
        let files = files.map_err(|error| CheckpointError { message: error.message })?;
        let root = since.root.clone();
        let found = log.checkpoints().changes(since, files).await?;
        let noted = found.into_iter().take(MAX_TOUCHED).map(|one| KnownPath {
            path: root.join(one.path),
            why: (one.before == StoredState::Unkept).then(|| NOT_KEPT.to_owned()),
            before: one.before,
            after: None,
        });
        log.baselines().note(log.owner(), ChangedBy::Outside, noted.collect()).await?;
    }
    Ok(())
}

const NOT_KEPT: &str = "earlier content was not saved";

/// Returns the earlier state of these paths according to the session's first snapshot. If there is no snapshot, all
/// that is known about a path is whether it existed.
async fn baselines(
    touched: Vec<(PathBuf, bool)>,
    log: &ChangeLog,
    settings: &ToolSettings,
) -> Result<Vec<KnownPath>, CheckpointError> {
    let first = log.baselines().first(log.session().clone()).await?;
    let first = first.into_iter().find(|first| first.root == settings.workspace);
    let stood = match first {
        Some(first) => {
            let below = |path: &PathBuf| path.strip_prefix(&first.root).unwrap_or(path).to_owned();
            let paths = touched.iter().map(|(path, _)| below(path)).collect();
            log.baselines().states_at(first, paths).await.ok()
        }
        None => None,
    };
    let noted = touched.into_iter().enumerate().map(|(at, (path, was_there))| {
        let known = stood.as_ref().and_then(|stood| stood.get(at)).cloned();
        let before = match known {
            Some(stood) => stood,
            None if was_there => StoredState::Unkept,
            None => StoredState::Missing,
        };
        KnownPath { path, why: (before == StoredState::Unkept).then(|| NOT_KEPT.to_owned()), before, after: None }
    });
    Ok(noted.collect())
}

struct FileIndex {
    files: HashMap<PathBuf, FileStamp>,
    watch: Option<TreeWatch>,
}

impl FileIndex {
    /// Returns the files that have changed, each with whether it existed before. Updates the tracked state.
    fn take_touched(&mut self, settings: &ToolSettings) -> Result<Vec<(PathBuf, bool)>, String> {
        let told = self.watch.as_mut().map(TreeWatch::take_touched);
        let found = match told {
            Some(TouchedPaths { files, directories, incomplete: false }) => self.stamps(&files, directories, settings),
            Some(_) | None => self.scan_all(settings)?,
        };
        let mut touched = Vec::new();
        for (path, now) in found {
            let before = self.files.get(&path).copied();
            if before == now {
                continue;
            }
            match now {
                Some(stamp) => drop(self.files.insert(path.clone(), stamp)),
                None => drop(self.files.remove(&path)),
            }
            touched.push((path, before.is_some()));
        }
        touched.sort();
        Ok(touched)
    }

    /// Returns the current state of the reported paths and of the files in new directories.
    fn stamps(
        &mut self,
        files: &BTreeSet<PathBuf>,
        directories: BTreeSet<PathBuf>,
        settings: &ToolSettings,
    ) -> Vec<(PathBuf, Option<FileStamp>)> {
        let mut found = HashMap::new();
        let watch = Mutex::new(self.watch.take());
        for directory in directories {
            // Whether a directory is ignored depends only on its parents.
            let Some(parent) = directory.parent() else { continue };
            let seen = tree(parent, Depth::Levels(1), settings, None).unwrap_or_default();
            if seen.directories.contains(&directory)
                && let Ok(WorkspaceTree { files, .. }) = tree(&directory, Depth::All, settings, Some(&watch))
            {
                found.extend(files.into_iter().map(|(path, stamp)| (path, Some(stamp))));
            }
        }
        self.watch = watch.into_inner().unwrap_or_else(PoisonError::into_inner);
        let parents: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        let mut there = HashMap::new();
        for parent in parents {
            there.extend(tree(parent, Depth::Levels(1), settings, None).unwrap_or_default().files);
        }
        for file in files {
            found.insert(file.clone(), there.get(file).copied());
        }
        found.into_iter().collect()
    }

    /// Returns the current state of all files by scanning the whole tree.
    fn scan_all(&mut self, settings: &ToolSettings) -> Result<Vec<(PathBuf, Option<FileStamp>)>, String> {
        // Moved directories are watched under their old names, so the watch starts over.
        let watch = Mutex::new(self.watch.take().and_then(|_| TreeWatch::new().ok()));
        let WorkspaceTree { files, .. } = tree(&settings.workspace, Depth::All, settings, Some(&watch))?;
        self.watch = watch.into_inner().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<_> = self.files.keys().filter(|path| !files.contains_key(*path)).cloned().collect();
        let now = files.into_iter().map(|(path, stamp)| (path, Some(stamp)));
        Ok(now.chain(gone.into_iter().map(|path| (path, None))).collect())
    }
}

fn start_tracking(root: &Path, settings: &ToolSettings) -> Tracking {
    let watch = TreeWatch::new().inspect_err(|error| tracing::warn!(%error, "cannot watch the workspace")).ok();
    let watch = Mutex::new(watch);
    match tree(root, Depth::All, settings, Some(&watch)) {
        Ok(WorkspaceTree { files, .. }) => {
            Tracking::Known { files, watch: watch.into_inner().unwrap_or_else(PoisonError::into_inner) }
        }
        Err(why) => Tracking::Blind(why),
    }
}

/// Adds a directory to the watch. Drops the watch if there are too many directories.
fn add(watch: &Mutex<Option<TreeWatch>>, directory: &Path) {
    let mut slot = watch.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(open) = slot.as_mut() else { return };
    let added = open.directories() < MAX_DIRECTORIES
        && open.add(directory).inspect_err(|error| tracing::warn!(%error, "cannot watch the workspace")).is_ok();
    if !added {
        *slot = None;
    }
}

/// Lists the files below a directory. Each directory is watched before it is read, so no change is missed.
fn tree(
    root: &Path,
    depth: Depth,
    settings: &ToolSettings,
    watch: Option<&Mutex<Option<TreeWatch>>>,
) -> Result<WorkspaceTree, String> {
    let target = Target { given: ".".to_owned(), real: root.to_owned(), place: Place::Directory };
    let (found, enough) = (Mutex::new(WorkspaceTree::default()), CancellationToken::new());
    if let Some(watch) = watch {
        add(watch, root);
    }
    let walked = walk(&target, settings, WalkScope::default_scope(depth), &SkippedPlaces::new(), &enough, || {
        |entry: &ignore::DirEntry| {
            let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            if let (true, Some(watch)) = (is_directory, watch) {
                add(watch, entry.path());
            }
            let stamp = if is_directory { None } else { entry.metadata().ok().map(|metadata| stamp(&metadata)) };
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            match stamp {
                Some(stamp) => drop(found.files.insert(entry.path().to_owned(), stamp)),
                None if is_directory => drop(found.directories.insert(entry.path().to_owned())),
                None => {}
            }
            if found.files.len() > MAX_FILES {
                enough.cancel();
            }
        }
    });
    if enough.is_cancelled() {
        return Err(format!("the workspace has more than {MAX_FILES} files"));
    }
    walked.map_err(|error| error.message)?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn stamp(metadata: &std::fs::Metadata) -> FileStamp {
    FileStamp::from_metadata(metadata).without_change_time()
}
