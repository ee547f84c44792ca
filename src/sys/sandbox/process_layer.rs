//! Mounts a layer over a directory for this process. The process and its children see the directory, but their writes
//! go to an upper directory.

use super::diagnostics;
use super::mount::{attach, keep_apart};
use super::mount_plan::{during, layered_mount};
use super::namespaces::map_own;
use super::probe::{describe_nested, mounts_below};
use super::{LayeredDirectory, Persistence};
use crate::sys::overlay::{Changes, Time, changes, mark, marked};
use crate::sys::path::hold_place;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::unistd::{getegid, geteuid};
use rustix::mount::{UnmountFlags, unmount};
use std::io;
use std::path::{Path, PathBuf};

/// A mounted layer.
#[derive(Debug)]
pub(crate) struct ProcessLayer {
    layered: LayeredDirectory,
    /// Time at which the layer was first created, according to the clock used for file times.
    began: Time,
}

impl ProcessLayer {
    /// Mounts a layer over a directory in this process's own namespaces. The process must be single-threaded. `base` is
    /// an existing private directory that receives the changes. If an earlier process left changes in it, they become
    /// visible again.
    ///
    /// # Errors
    /// If the system does not support layers, the error says which feature is missing and how to enable it. The
    /// directory is unchanged in that case.
    pub(crate) fn mount_over(directory: &Path, base: &Path, persistence: Persistence) -> Result<Self, String> {
        let here = std::env::current_dir().map_err(during("finding the current directory"))?;
        if threads().map_err(during("counting threads"))? > 1 {
            return Err("this process has several threads".to_owned());
        }
        let below = mounts_below(&[directory.to_owned()]);
        if !below.is_empty() {
            return Err(describe_nested(&below));
        }
        let layered_here = directories(directory, base);
        // The mark is written last, so a layer with a mark is complete.
        let began = match marked(base) {
            Some(began) => began,
            None => create(&layered_here, base)?,
        };
        enter_namespaces()?;
        let root = hold_place(Path::new("/")).map_err(during("`/`"))?;
        keep_apart(&root).map_err(|error| diagnostics::no_mounts(&error))?;
        let place = hold_place(directory).map_err(during(format!("`{}`", directory.display())))?;
        let mount = layered_mount(&place, &layered_here, persistence, &mut Vec::new())?;
        attach(&mount, &place).map_err(during(format!("covering `{}`", directory.display())))?;
        let layer = Self { layered: layered_here, began };
        // The working directory still refers to the directory below the layer.
        enter_again(&here).map_err(during("entering the layer"))?;
        Ok(layer)
    }

    /// Unmounts the layer, so the directory itself becomes visible again. Returns the changes in the layer.
    pub(crate) fn unmount(self) -> io::Result<Changes> {
        let here = std::env::current_dir();
        unmount(&self.layered.directory, UnmountFlags::DETACH)?;
        // A working directory that exists only in the layer cannot be entered again.
        let entered = here.and_then(|here| enter_again(&here));
        entered.or_else(|_| enter_again(&self.layered.directory))?;
        changes(&self.layered, self.began)
    }
}

/// Returns the changes in a layer below `base`. They may be incomplete if a process has the layer mounted.
///
/// # Errors
/// Returns an error if the layer does not exist or cannot be read.
pub(crate) fn read_layer(directory: &Path, base: &Path) -> io::Result<Changes> {
    let began = marked(base).ok_or(io::ErrorKind::NotFound)?;
    changes(&directories(directory, base), began)
}

/// Returns the path below `base` at which the new content of a path, relative to the directory, is found.
pub(crate) fn layer_path(base: &Path, relative: &Path) -> PathBuf {
    base.join(UPPER).join(relative)
}

const UPPER: &str = "upper";
const WORK: &str = "work";

fn directories(directory: &Path, base: &Path) -> LayeredDirectory {
    LayeredDirectory { directory: directory.to_owned(), upper: base.join(UPPER), work: base.join(WORK) }
}

/// Creates the directories that a layer needs. Returns the time at which the layer was created.
fn create(layered: &LayeredDirectory, base: &Path) -> Result<Time, String> {
    for path in [&layered.upper, &layered.work] {
        // The directories may exist if a process was killed at this point. They are then still empty.
        std::fs::create_dir_all(path).map_err(during(format!("`{}`", path.display())))?;
    }
    if let Ok(metadata) = layered.directory.metadata() {
        // The layer has the mode of its upper directory.
        let _ = std::fs::set_permissions(&layered.upper, metadata.permissions());
    }
    mark(base).map_err(during(format!("`{}`", base.display())))
}

fn enter_again(directory: &Path) -> io::Result<()> {
    std::env::set_current_dir(directory)
}

fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Enters a new mount namespace and, unless the user is root, also a new user namespace.
fn enter_namespaces() -> Result<(), String> {
    if geteuid().is_root() && unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        return Ok(());
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS).map_err(|errno| diagnostics::no_namespaces(&errno.into()))?;
    // A process whose memory is hidden from others cannot write its own mapping.
    let is_open = prctl::get_dumpable().unwrap_or(false);
    let _ = prctl::set_dumpable(true);
    let mapped = map_own(uid, gid).map_err(during("mapping users"));
    let hidden = prctl::set_dumpable(is_open);
    mapped.and(hidden.map_err(|errno| during("hiding the memory of this process")(errno.into())))
}
