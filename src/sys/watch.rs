//! Tells when one of a few files may have changed. It wakes for nothing else.

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// An editor writes a file in several steps; it is done when this long nothing more came.
const QUIET: Duration = Duration::from_millis(60);
/// Who never stops writing is not waited for.
const PATIENCE: usize = 20;

pub struct Watch {
    watcher: RecommendedWatcher,
    files: Vec<PathBuf>,
    directories: BTreeSet<PathBuf>,
    /// The files, and where links lead from them.
    names: Arc<Mutex<BTreeSet<PathBuf>>>,
    changed: Arc<Notify>,
}

impl Watch {
    /// The directories of the files are watched, for editors write a new file and rename it.
    pub fn of(files: Vec<PathBuf>) -> Result<Self, String> {
        let (names, changed) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(Notify::new()));
        let (of_interest, ring) = (Arc::clone(&names), Arc::clone(&changed));
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| concerns(&event, &of_interest)) {
                ring.notify_one();
            }
        });
        let watcher = watcher.map_err(|error| error.to_string())?;
        let mut watch = Self { watcher, files, directories: BTreeSet::new(), names, changed };
        watch.arm();
        Ok(watch)
    }

    /// Ready when something changed and it has become quiet.
    pub async fn changed(&mut self) {
        self.changed.notified().await;
        for _ in 0..PATIENCE {
            if tokio::time::timeout(QUIET, self.changed.notified()).await.is_err() {
                break;
            }
        }
        // A directory may be there now that was not, and a link may lead elsewhere.
        self.arm();
    }

    fn arm(&mut self) {
        for directory in std::mem::take(&mut self.directories) {
            let _ = self.watcher.unwatch(&directory);
        }
        let real = self.files.iter().filter_map(|file| file.canonicalize().ok());
        let names: BTreeSet<PathBuf> = self.files.iter().cloned().chain(real).collect();
        // Where a directory is missing its parent tells when it comes.
        let there = |file: &PathBuf| file.ancestors().skip(1).find(|directory| directory.is_dir()).map(Path::to_owned);
        let directories: BTreeSet<PathBuf> = names.iter().filter_map(there).collect();
        if let Ok(mut known) = self.names.lock() {
            *known = names;
        }
        for directory in &directories {
            if let Err(error) = self.watcher.watch(directory, RecursiveMode::NonRecursive) {
                tracing::warn!(%error, directory = %directory.display(), "not watched");
            }
        }
        self.directories = directories;
    }
}

/// Whether an event is about one of the files or about a directory above them. Reading them is no event.
fn concerns(event: &Event, names: &Mutex<BTreeSet<PathBuf>>) -> bool {
    let reads = matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write));
    if reads {
        return false;
    }
    let Ok(names) = names.lock() else { return true };
    event.need_rescan() || event.paths.iter().any(|path| names.iter().any(|name| name.starts_with(path)))
}
