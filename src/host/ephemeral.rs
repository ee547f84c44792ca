//! Data directories of runs that are not saved. Each directory is deleted at the end of its run or, if the process was
//! killed, the next time aye starts.

use super::console::{warn, warn_all};
use super::error::CliError;
use crate::protocol::Problem;
use crate::sys::overlay::discard;
use crate::tools::finish_commits;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Directory inside the data directory that contains the directories of all unsaved runs.
const DIRECTORY: &str = "ephemeral";
/// Lock of the parent directory. It prevents abandoned runs from being deleted while a new run is starting.
const ALL_LOCK: &str = "lock";
/// Lock that a run holds until it ends.
const RUN_LOCK: &str = "run.lock";
/// Directory for the changes of a run whose workspace is covered by a copy-on-write layer. Such changes are never
/// applied to the real workspace.
const LAYER: &str = "layer";

/// Data directory of an unsaved run, which is deleted when this value is dropped.
pub(crate) struct EphemeralData {
    path: PathBuf,
    /// Lock that tells other processes that the run has not ended.
    _lock: File,
}

impl EphemeralData {
    /// Creates a private directory for a run below the data directory.
    pub(crate) fn create(data: &Path) -> Result<Self, CliError> {
        let failed = |error: io::Error| {
            let what = format!("cannot create a directory for `--ephemeral` in `{}`", data.display());
            CliError::usage(Problem::new(what).because(error)).hint("set AYE_DATA_DIR to a local directory that you can write to")
        };
        let parent = data.join(DIRECTORY);
        DirBuilder::new().recursive(true).mode(0o700).create(&parent).map_err(failed)?;
        let _all = lock_file(&parent.join(ALL_LOCK)).and_then(|file| file.lock().map(|()| file)).map_err(failed)?;
        let path = parent.join(uuid::Uuid::new_v4().simple().to_string());
        DirBuilder::new().mode(0o700).create(&path).map_err(failed)?;
        let lock = lock_file(&path.join(RUN_LOCK)).and_then(|file| file.lock().map(|()| file)).map_err(failed)?;
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory for a copy-on-write layer over the workspace.
    pub(crate) fn create_layer(&self) -> io::Result<PathBuf> {
        let path = self.path.join(LAYER);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }
}

impl Drop for EphemeralData {
    fn drop(&mut self) {
        // No other process removes the directory now, because this process holds the lock.
        if let Err(problem) = remove(&self.path) {
            warn(problem.hint("aye tries again at the next start"));
        }
    }
}

/// Deletes the directories of runs whose process has died, after finishing any interrupted application of a command's
/// changes.
pub(crate) fn remove_abandoned(data: &Path) {
    let parent = data.join(DIRECTORY);
    let Ok(entries) = parent.read_dir() else { return };
    let Ok(all) = lock_file(&parent.join(ALL_LOCK)) else { return };
    // Another process that starts or removes runs does the same work.
    if all.try_lock().is_err() {
        return;
    }
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        // A directory without its lock is left over from an interrupted removal.
        let is_left = match OpenOptions::new().read(true).write(true).open(path.join(RUN_LOCK)) {
            Ok(lock) => !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_left && let Err(problem) = remove(&path) {
            warn(problem);
        }
    }
}

/// Deletes a directory, unless a command's changes in it have not been applied completely. In that case, applying them
/// continues the next time aye starts.
fn remove(path: &Path) -> Result<(), Problem> {
    let failed = || Problem::new(format!("cannot remove `{}`, the data of an `--ephemeral` run", path.display()));
    // Changes that were being applied in a layer must not reach the real files.
    if !path.join(LAYER).exists() {
        let finished = finish_commits(path);
        warn_all(&finished.notices);
        if !finished.is_complete {
            return Err(failed().because("a command's changes are not completely applied"));
        }
    }
    discard(path).map_err(|error| failed().because(error))
}

fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(data: &Path) -> usize {
        data.join(DIRECTORY).read_dir().map_or(0, |entries| entries.flatten().filter(|entry| entry.path().is_dir()).count())
    }

    #[test]
    fn the_directory_is_private_and_removed_with_its_content_at_the_end() {
        let data = tempfile::tempdir().unwrap();
        let run = EphemeralData::create(data.path()).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&run.path().metadata().unwrap().permissions()) & 0o777, 0o700);
        std::fs::create_dir_all(run.path().join("a/b")).unwrap();
        std::fs::write(run.path().join("a/b/aye.db"), "x").unwrap();
        std::fs::set_permissions(run.path().join("a"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        assert_eq!(names(data.path()), 1);
        drop(run);
        assert_eq!(names(data.path()), 0);
    }

    #[test]
    fn only_directories_of_ended_runs_are_removed_at_startup() {
        let data = tempfile::tempdir().unwrap();
        remove_abandoned(data.path());
        let run = EphemeralData::create(data.path()).unwrap();
        // The states after a process was killed: with an abandoned lock, and without a lock.
        for (name, file) in [("killed", RUN_LOCK), ("half-removed", "aye.db")] {
            let left = data.path().join(DIRECTORY).join(name);
            std::fs::create_dir(&left).unwrap();
            std::fs::write(left.join(file), "").unwrap();
        }
        remove_abandoned(data.path());
        assert_eq!(names(data.path()), 1);
        assert!(run.path().join(RUN_LOCK).exists());
    }

    #[test]
    fn failing_to_create_the_directory_is_an_error_with_its_path() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("file");
        std::fs::write(&file, "").unwrap();
        let Err(error) = EphemeralData::create(&file) else { panic!("created below a file") };
        assert!(error.to_string().contains("AYE_DATA_DIR") && error.to_string().contains("file"), "{error}");
    }
}
