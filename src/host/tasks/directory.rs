//! Task directories inside the data directory, and the lock held by the process that uses a task.

use super::description::{TaskDescription, TaskNotes, VERSION};
use crate::host::error::CliError;
use crate::protocol::Problem;
use crate::sys::file::private;
use crate::sys::instance::Instance;
use crate::sys::overlay::discard;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Directory inside the data directory that contains all task directories.
const DIRECTORY: &str = "tasks";
const DESCRIPTION: &str = "task.json";
const NOTES: &str = "notes.json";
const LOCK: &str = "use.lock";
const LAYER: &str = "layer";
const DATA: &str = "data";
/// File that receives the output of the background process.
const OUTPUT: &str = "output.log";
/// First character of a directory name while the directory is being created or deleted.
const INCOMPLETE: char = '.';
/// Maximum size of a stored description in bytes. The description includes the prompt.
const MAX_BYTES: u64 = 16 << 20;
/// Minimum number of digits in an abbreviated task ID.
const PREFIX_DIGITS: usize = 6;
/// Number of digits of a task ID shown in lists.
pub(crate) const SHORT_DIGITS: usize = 8;

/// Directory of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskDirectory {
    path: PathBuf,
    id: String,
}

/// Purpose for which a process uses a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskUse {
    /// The task runs without a screen.
    Run,
    /// The task is open on a screen.
    Open,
    /// The task's changes are being applied or deleted.
    Changes,
}

/// The process that uses a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskHolder {
    #[serde(flatten)]
    pub instance: Instance,
    pub purpose: TaskUse,
}

/// Exclusive right to use a task, which lasts until this value is dropped or the process exits.
#[derive(Debug)]
pub(crate) struct TaskLock {
    file: File,
}

impl Drop for TaskLock {
    fn drop(&mut self) {
        // The process may continue without using the task.
        let _ = self.file.set_len(0);
    }
}

impl TaskDirectory {
    /// Returns the ID of a new task.
    pub(crate) fn new_id() -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }

    /// Creates the directory for a new task atomically.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub(crate) fn create(data: &Path, id: String, description: &TaskDescription) -> Result<Self, CliError> {
        let failed = |error: &dyn std::fmt::Display| {
            CliError::failed(Problem::new(format!("cannot create a task in `{}`", data.display())).because(error))
        };
        let parent = data.join(DIRECTORY);
        DirBuilder::new().recursive(true).mode(0o700).create(&parent).map_err(|error| failed(&error))?;
        let incomplete = Self { path: parent.join(format!("{INCOMPLETE}{id}")), id: id.clone() };
        for path in [incomplete.path.clone(), incomplete.layer(), incomplete.data()] {
            DirBuilder::new().mode(0o700).create(path).map_err(|error| failed(&error))?;
        }
        let text = serde_json::to_vec_pretty(description).map_err(|error| failed(&error))?;
        write(&incomplete.path.join(DESCRIPTION), text).map_err(|error| failed(&error))?;
        let path = parent.join(&id);
        std::fs::rename(&incomplete.path, &path).map_err(|error| failed(&error))?;
        Ok(Self { path, id })
    }

    /// Returns all tasks. Deletes what was left behind when tasks were created or deleted incompletely.
    pub(crate) fn all(data: &Path) -> Vec<Self> {
        let parent = data.join(DIRECTORY);
        let Ok(entries) = parent.read_dir() else { return Vec::new() };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            match name.strip_prefix(INCOMPLETE) {
                Some(_) if is_old(&entry.path()) => {
                    let _ = discard(&entry.path());
                }
                Some(_) => {}
                None if is_id(&name) => found.push(Self { path: entry.path(), id: name }),
                None => {}
            }
        }
        found.sort_by(|left, right| left.id.cmp(&right.id));
        found
    }

    /// Finds the task whose ID begins with `prefix`.
    ///
    /// # Errors
    /// Returns an error if no task matches, or if several tasks do.
    pub(crate) fn find(data: &Path, prefix: &str) -> Result<Self, CliError> {
        let digits = prefix.to_ascii_lowercase();
        let listing = "run `aye tasks --all` to list the IDs";
        if digits.len() < PREFIX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let problem = Problem::new(format!("`{prefix}` is not a task ID"));
            return Err(CliError::usage(problem.because("a task ID has at least 6 hex digits").hint(listing)));
        }
        let mut found: Vec<Self> = Self::all(data).into_iter().filter(|task| task.id.starts_with(&digits)).collect();
        match (found.pop(), found.is_empty()) {
            (Some(task), true) => Ok(task),
            (Some(_), false) => {
                Err(CliError::usage(format!("several tasks have an ID that starts with `{prefix}`")).hint(listing))
            }
            (None, _) => Err(CliError::usage(format!("no task has an ID that starts with `{prefix}`")).hint(listing)),
        }
    }

    /// Returns the directory that contains all task directories.
    pub(crate) fn parent(data: &Path) -> PathBuf {
        data.join(DIRECTORY)
    }

    /// Returns the files that change whenever a process starts or stops using the task.
    pub(crate) fn watched_files(&self) -> Vec<PathBuf> {
        vec![self.path.join(LOCK), self.path.join(NOTES)]
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the task ID in the abbreviated form used in lists.
    pub(crate) fn short_id(&self) -> &str {
        self.id.get(..SHORT_DIGITS).unwrap_or(&self.id)
    }

    /// Returns the directory of the copy-on-write layer over the workspace.
    pub(crate) fn layer(&self) -> PathBuf {
        self.path.join(LAYER)
    }

    /// Returns the data directory of the task's session.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Returns the file that receives the output of the background process.
    pub(crate) fn output(&self) -> PathBuf {
        self.path.join(OUTPUT)
    }

    /// Reads the task's description.
    ///
    /// # Errors
    /// Returns an error if the file is missing or damaged, or if it was written by a newer version.
    pub(crate) fn description(&self) -> Result<TaskDescription, CliError> {
        let failed = |why: &dyn std::fmt::Display| {
            let problem = Problem::new(format!("cannot read task `{}`", self.short_id())).because(why);
            CliError::failed(problem.hint(format!("run `aye task drop {}` to remove it", self.short_id())))
        };
        let bytes = private::read(&self.path.join(DESCRIPTION), MAX_BYTES).map_err(|error| failed(&error))?;
        let bytes = bytes.ok_or_else(|| failed(&"the description is missing"))?;
        let description: TaskDescription = serde_json::from_slice(&bytes).map_err(|error| failed(&error))?;
        if description.version > VERSION {
            return Err(failed(&format!(
                "the description has version {}, but this version of aye reads {VERSION}",
                description.version
            )));
        }
        Ok(description)
    }

    /// Reads the task's notes. Returns empty notes if there are none, or if they are damaged.
    pub(crate) fn notes(&self) -> TaskNotes {
        let bytes = private::read(&self.path.join(NOTES), MAX_BYTES).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Changes the task's notes. When this function returns, the notes have been written to disk.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn update_notes(&self, change: impl FnOnce(&mut TaskNotes)) -> Result<(), CliError> {
        let updated = private::update::<private::PrivateError>(&self.path.join(NOTES), MAX_BYTES, |old| {
            let mut notes = old.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
            change(&mut notes);
            serde_json::to_vec(&notes).map(Some).map_err(|error| private::PrivateError::Io(error.into()))
        });
        let failed = |error| CliError::failed(Problem::new(format!("cannot write to task `{}`", self.short_id())).because(error));
        updated.map_err(failed)
    }

    /// Returns the running process that is using the task, or `None` if there is none.
    pub(crate) fn holder(&self) -> Option<TaskHolder> {
        let text = std::fs::read_to_string(self.path.join(LOCK)).ok()?;
        let holder: TaskHolder = serde_json::from_str(&text).ok()?;
        holder.instance.is_alive().then_some(holder)
    }

    /// Locks the task for use by this process.
    ///
    /// # Errors
    /// Returns an error if another process is using the task.
    pub(crate) fn lock(&self, purpose: TaskUse) -> Result<TaskLock, CliError> {
        let failed =
            |error: io::Error| CliError::failed(Problem::new(format!("cannot lock task `{}`", self.short_id())).because(error));
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).clone();
        let path = self.path.join(LOCK);
        let file = options.open(&path).map_err(failed)?;
        if let Err(error) = file.try_lock() {
            return Err(match error {
                std::fs::TryLockError::WouldBlock => self.busy(),
                std::fs::TryLockError::Error(error) => failed(error),
            });
        }
        let holder = TaskHolder { instance: Instance::current(), purpose };
        let text = serde_json::to_string(&holder).map_err(|error| failed(error.into()))?;
        // The file is opened a second time, because watchers of the file are notified when a writer closes it. The lock
        // itself stays open until this process ends.
        std::fs::write(&path, text).map_err(failed)?;
        Ok(TaskLock { file })
    }

    fn busy(&self) -> CliError {
        let id = self.short_id();
        match self.holder() {
            Some(holder) => {
                let pid = holder.instance.pid;
                let (state, action) = match holder.purpose {
                    TaskUse::Run => ("is running", format!("run `aye task stop {id}` to stop it first")),
                    TaskUse::Open => ("is open", "quit aye there".to_owned()),
                    TaskUse::Changes => ("is in use", "wait until that command has ended".to_owned()),
                };
                CliError::usage(format!("task `{id}` {state} in process {pid}")).hint(action)
            }
            None => CliError::usage(format!("task `{id}` is in use by another process")).hint("try again"),
        }
    }

    /// Deletes the task and all its data. The caller must hold the lock.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be deleted completely. What remains is deleted later.
    pub(crate) fn remove(&self) -> Result<(), CliError> {
        let failed =
            |error: io::Error| CliError::failed(Problem::new(format!("cannot remove task `{}`", self.short_id())).because(error));
        let aside = self.path.with_file_name(format!("{INCOMPLETE}{}", self.id));
        std::fs::rename(&self.path, &aside).map_err(failed)?;
        discard(&aside).map_err(failed)
    }
}

/// Returns whether the directory is so old that it cannot still be in the process of being created.
fn is_old(path: &Path) -> bool {
    const AGE: std::time::Duration = std::time::Duration::from_secs(60);
    let modified = path.symlink_metadata().and_then(|metadata| metadata.modified());
    modified.ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > AGE)
}

fn is_id(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn write(path: &Path, text: Vec<u8>) -> Result<(), private::PrivateError> {
    private::update(path, MAX_BYTES, |_| Ok::<_, private::PrivateError>(Some(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tasks::description::{CopyKind, StartOptions};

    fn description() -> TaskDescription {
        TaskDescription {
            version: VERSION,
            prompt: "fix it".to_owned(),
            workspace: PathBuf::from("/work"),
            created: jiff::Timestamp::UNIX_EPOCH,
            copy: CopyKind::Layer,
            options: StartOptions::default(),
            check: Some("make test".to_owned()),
        }
    }

    #[test]
    fn a_task_is_found_by_the_first_digits_of_its_id() {
        let data = tempfile::tempdir().unwrap();
        let task = TaskDirectory::create(data.path(), TaskDirectory::new_id(), &description()).unwrap();
        assert_eq!(TaskDirectory::find(data.path(), &task.id()[..6]).unwrap(), task);
        assert_eq!(task.description().unwrap(), description());
        for wrong in ["zzzzzz", "123", "ffffffffffffffffffffffffffffffff0"] {
            assert!(TaskDirectory::find(data.path(), wrong).unwrap_err().to_string().contains("task"), "{wrong}");
        }
        task.remove().unwrap();
        assert!(TaskDirectory::all(data.path()).is_empty());
    }

    #[test]
    fn one_process_uses_a_task_at_a_time() {
        let data = tempfile::tempdir().unwrap();
        let task = TaskDirectory::create(data.path(), TaskDirectory::new_id(), &description()).unwrap();
        assert!(task.holder().is_none());
        let lock = task.lock(TaskUse::Run).unwrap();
        assert_eq!(task.holder().unwrap().purpose, TaskUse::Run);
        let busy = task.lock(TaskUse::Open).unwrap_err().to_string();
        assert!(busy.contains("is running in process"), "{busy}");
        drop(lock);
        assert!(task.holder().is_none());
        drop(task.lock(TaskUse::Changes).unwrap());
    }

    #[test]
    fn damaged_files_are_reported_and_damaged_notes_are_empty() {
        let data = tempfile::tempdir().unwrap();
        let task = TaskDirectory::create(data.path(), TaskDirectory::new_id(), &description()).unwrap();
        task.update_notes(|notes| notes.is_stopped = true).unwrap();
        assert!(task.notes().is_stopped);
        std::fs::write(task.path.join(NOTES), "{").unwrap();
        assert_eq!(task.notes(), TaskNotes::default());
        std::fs::write(task.path.join(DESCRIPTION), "{\"version\": 1}").unwrap();
        let error = task.description().unwrap_err();
        assert!(error.problems[0].text().contains("aye task drop"), "{error}");
    }
}
