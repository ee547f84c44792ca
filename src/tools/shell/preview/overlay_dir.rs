//! The directory of a preview. It is locked by this process, and removed on drop unless its effects are undecided.

use super::direct_output::DirectOutput;
use crate::protocol::{CallId, SessionId};
use crate::sys::allocator::release_free_memory;
use crate::sys::overlay;
use crate::sys::overlay::LayeredDirectory;
use crate::tools::background::Commands;
use crate::tools::blocking::run_in_background;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the directory, below the location for upper directories, that contains all previews.
const PREVIEWS: &str = "previews";
const LOCK: &str = "lock";
const CALL: &str = "call.json";
/// Result of the call if all changes are applied. Written before the first change is made.
const RESULT: &str = "result.json";
/// End of a run that preceded approval. Exists until a decision on the run's effects has been made.
const ENDED: &str = "ended.json";
/// Build directories to which the command writes directly. Exists until the command's other effects are applied or
/// discarded.
const DIRECT: &str = "direct.json";
/// Final result, which may be an error.
const FINAL: &str = "final.json";

/// Extension given to a directory that is being removed.
const GONE: &str = "gone";

/// The call to which the preview belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call {
    pub tool_call_id: CallId,
    pub tool_name: String,
    pub session_id: Option<SessionId>,
}

/// A preview's directory, which is used exclusively by this value. It is removed on drop unless marked otherwise.
#[derive(Debug)]
pub(super) struct OverlayDir {
    path: PathBuf,
    /// Lock file. If its owner dies, the lock is released, which makes leftovers recognizable.
    held: File,
    /// Whether the directory remains when this value is dropped.
    stays: bool,
    /// The session's commands. If they end together with the session, the directory remains as well.
    session: Option<Commands>,
    direct: Option<DirectOutput>,
    /// Whether there are many changes in memory until this value is dropped.
    is_large: bool,
}

/// Returns the directory that contains all previews.
pub(super) fn previews(base: &Path) -> PathBuf {
    base.join(PREVIEWS)
}

impl OverlayDir {
    pub(crate) fn make(base: &Path, call: &Call) -> io::Result<Self> {
        let previews = previews(base);
        private().recursive(true).create(&previews)?;
        let path = previews.join(format!("{}-{}", std::process::id(), uuid::Uuid::new_v4().simple()));
        private().create(&path)?;
        let held = open_lock(&path)?;
        held.lock()?;
        let view = Self { path, held, stays: false, session: None, direct: None, is_large: false };
        // No need for durability: after a power failure, the command is gone too.
        view.write(CALL, call, false)?;
        Ok(view)
    }

    /// Opens a view that was left behind by a process that has ended. Returns `Ok(None)` if its owner is still alive.
    ///
    /// # Errors
    /// Returns an error if the path is not a private directory of this user. Another user could otherwise have forged
    /// its records, which contain the paths of files that are read.
    pub(crate) fn open_abandoned(path: &Path) -> io::Result<Option<Self>> {
        overlay::check_private(path)?;
        if path.extension().is_some_and(|end| end == GONE) {
            overlay::discard(path)?;
            return Ok(None);
        }
        let held = open_lock(path)?;
        match held.try_lock() {
            Ok(()) => {
                let (path, direct) = (path.to_owned(), read(path, DIRECT));
                Ok(Some(Self { path, held, stays: true, session: None, direct, is_large: false }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a layer's directories are directly inside this directory. A record that refers to any other
    /// location is not followed.
    pub(crate) fn contains(&self, layer: &LayeredDirectory) -> bool {
        // A path that ends in `..` has no file name.
        let is_entry = |path: &Path| path.parent() == Some(&*self.path) && path.file_name().is_some();
        let is_within = |path: &Path| is_entry(path) && path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        is_within(&layer.upper) && is_within(&layer.work)
    }

    /// Creates layers over directories, giving them the same attributes. No layer is created for a directory that does
    /// not exist.
    pub(crate) fn layers(&self, name: &str, directories: &[PathBuf]) -> io::Result<Vec<LayeredDirectory>> {
        let mut layers = Vec::new();
        for (number, directory) in directories.iter().enumerate() {
            let Ok(data) = fs::metadata(directory) else { continue };
            let upper = self.path.join(format!("{name}-{number}"));
            let work = self.path.join(format!("{name}-work-{number}"));
            private().create(&upper)?;
            private().create(&work)?;
            // The command sees the directory with the owner and mode of the upper directory.
            let own = fs::metadata(&upper)?;
            if (own.uid(), own.gid()) != (data.uid(), data.gid()) {
                // Without permission to change the owner, the user remains the owner.
                let _ = std::os::unix::fs::chown(&upper, Some(data.uid()), Some(data.gid()));
            }
            fs::set_permissions(&upper, fs::Permissions::from_mode(data.mode() & 0o7777))?;
            layers.push(LayeredDirectory { directory: directory.clone(), upper, work });
        }
        Ok(layers)
    }

    pub(crate) fn call(&self) -> Option<Call> {
        self.read(CALL)
    }

    /// Stores the result durably, together with the record of its call.
    pub(crate) fn keep_result<T: Serialize>(&self, result: &T) -> io::Result<()> {
        self.write(RESULT, result, true)?;
        File::open(self.path.join(CALL))?.sync_all()
    }

    pub(crate) fn result<T: DeserializeOwned>(&self) -> Option<T> {
        self.read(RESULT)
    }

    /// Durably stores the end of a run whose effects are undecided, because the journal refers to it.
    pub(crate) fn keep_ended<T: Serialize>(&self, ended: &T) -> io::Result<()> {
        self.write(ENDED, ended, true)?;
        File::open(self.path.join(CALL))?.sync_all()
    }

    pub(crate) fn ended_run<T: DeserializeOwned>(&self) -> Option<T> {
        self.read(ENDED)
    }

    /// Returns whether the effects are still undecided, that is, the run has ended and no change is being applied.
    pub(crate) fn is_undecided(&self) -> bool {
        is_undecided(&self.path)
    }

    /// Returns the session to which an undecided layer belongs, and when its run ended. Works even for a layer that is
    /// in use.
    pub(crate) fn undecided_session(path: &Path) -> Option<(SessionId, SystemTime)> {
        if path.extension().is_some() || overlay::check_private(path).is_err() || !is_undecided(path) {
            return None;
        }
        let call: Call = read(path, CALL)?;
        let ended = path.join(ENDED).metadata().and_then(|metadata| metadata.modified()).ok()?;
        Some((call.session_id?, ended))
    }

    /// Keeps the directory after the session if these commands end together with it before the effects have been
    /// decided on.
    pub(crate) fn outlives(&mut self, session: Commands) {
        self.session = Some(session);
    }

    /// Arranges for freed memory to be returned to the system when the directory is removed, because there are many
    /// changes.
    pub(crate) fn release_memory_on_drop(&mut self) {
        self.is_large = true;
    }

    /// Stores the build directories to which the command will write directly.
    pub(crate) fn keep_direct(&mut self, direct: DirectOutput) -> io::Result<()> {
        self.write(DIRECT, &direct, false)?;
        self.direct = Some(direct);
        Ok(())
    }

    pub(crate) fn direct(&self) -> Option<&DirectOutput> {
        self.direct.as_ref()
    }

    /// Records that the command's effects have been applied.
    pub(crate) fn end_direct(&mut self) {
        if self.direct.take().is_some()
            && let Err(error) = fs::remove_file(self.path.join(DIRECT))
        {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove a preview file");
        }
    }

    /// Makes the files whose changes are discarded newer than the build output that the command wrote. Must be called
    /// before the copies are removed.
    pub(crate) fn discard_direct(&mut self) {
        if let Some(direct) = &self.direct {
            direct.discard();
            self.end_direct();
        }
    }

    /// Stores the call's final result, which takes precedence over every other record in this directory.
    pub(crate) fn keep_final<T: Serialize>(&self, result: &T) -> io::Result<()> {
        self.write(FINAL, result, true)
    }

    pub(crate) fn final_result<T: DeserializeOwned>(&self) -> Option<T> {
        self.read(FINAL)
    }

    /// Makes the directory remain after this process exits.
    pub(crate) fn keep_on_drop(&mut self) {
        self.stays = true;
    }

    /// Makes the directory be removed on drop.
    pub(crate) fn remove_on_drop(&mut self) {
        self.stays = false;
    }

    /// Removes the copies, but not the results.
    pub(crate) fn shrink(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                overlay::discard(&entry.path())?;
            }
        }
        Ok(())
    }

    fn write<T: Serialize>(&self, name: &str, value: &T, sync: bool) -> io::Result<()> {
        let (new, path) = (self.path.join(format!("{name}.new")), self.path.join(name));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let mut buffered = BufWriter::new(file);
        serde_json::to_writer(&mut buffered, value)?;
        let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        if sync {
            file.sync_all()?;
        }
        fs::rename(new, path)?;
        if sync { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        read(&self.path, name)
    }
}

fn read<T: DeserializeOwned>(directory: &Path, name: &str) -> Option<T> {
    serde_json::from_slice(&fs::read(directory.join(name)).ok()?).ok()
}

fn is_undecided(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has(ENDED) && ![RESULT, FINAL].into_iter().any(has) && !overlay::has_begun(directory)
}

impl Drop for OverlayDir {
    fn drop(&mut self) {
        if self.stays || self.session.as_ref().is_some_and(Commands::is_ended) {
            // A child process shares the lock file until it executes its program, so closing the file may not unlock
            // it.
            if let Err(error) = self.held.unlock() {
                tracing::debug!(%error, path = %self.path.display(), "cannot unlock a preview");
            }
            return;
        }
        self.discard_direct();
        let mut path = std::mem::take(&mut self.path);
        // Rename the directory first, so that no process opens a partially removed view.
        let gone = path.with_extension(GONE);
        if fs::rename(&path, &gone).is_ok() {
            path = gone;
        }
        let is_large = self.is_large;
        // Removal can take a long time.
        run_in_background(move || {
            if let Err(error) = overlay::discard(&path) {
                tracing::warn!(%error, path = %path.display(), "cannot remove a preview");
            }
            if is_large {
                release_free_memory();
            }
        });
    }
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK))
}
