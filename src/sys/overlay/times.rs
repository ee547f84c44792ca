//! Modification times, which build tools compare: those of files whose changes were applied, and those of files whose
//! changes were discarded.

use super::Changes;
use super::node::{Node, NodeKind, Time};
use crate::sys::file::tree::names;
use crate::sys::path::{open_below, open_directory, pass_below};
use nix::fcntl::OFlag;
use nix::sys::stat::{UtimensatFlags, fstat, utimensat};
use nix::sys::time::TimeSpec;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Sets the modification time of every new or changed file to the current time, except for files below the directories
/// `except`, which are relative paths.
pub(crate) fn set_current_times(changes: &mut Changes, except: &[PathBuf]) -> io::Result<()> {
    let upper = open_directory(&changes.layered.upper)?;
    let is_meant = |path: &Path| !except.iter().any(|directory| path.starts_with(directory));
    for change in changes.entries.iter_mut().filter(|change| is_meant(&change.path)) {
        let Some(after) = change.after.as_mut().filter(|after| after.kind == NodeKind::File) else { continue };
        if let Some(now) = touch(&upper, &change.path)? {
            (after.modified, after.changed) = (now.modified, now.changed);
        }
    }
    Ok(())
}

/// Sets the modification time of every real file that a discarded change would have replaced or deleted to the current
/// time, so build output made from the discarded content never appears newer. `is_discarded` selects the changes by
/// path. Files that cannot be touched are skipped.
pub(crate) fn touch_replaced(changes: &Changes, is_discarded: impl Fn(&Path) -> bool) -> io::Result<()> {
    let lower = open_directory(&changes.layered.directory)?;
    let is_file = |node: Option<Node>| node.is_some_and(|node| node.kind == NodeKind::File);
    for change in changes.entries.iter().filter(|change| is_file(change.before) && is_discarded(&change.path)) {
        if let Err(error) = touch(&lower, &change.path) {
            tracing::debug!(%error, path = %change.path.display(), "cannot touch a file whose change was discarded");
        }
    }
    Ok(())
}

/// Sets the modification time of a regular file to the current time. Returns the file's new state, or `None` if there
/// is no such file.
fn touch(directory: &OwnedFd, path: &Path) -> io::Result<Option<Node>> {
    let Ok(parent) = pass_below(directory, path.parent().unwrap_or(Path::new(""))) else { return Ok(None) };
    let name: &OsStr = path.file_name().unwrap_or_default();
    if !Node::at(&parent, name)?.is_some_and(|node| node.kind == NodeKind::File) {
        return Ok(None);
    }
    utimensat(&parent, name, &TimeSpec::UTIME_OMIT, &TimeSpec::UTIME_NOW, UtimensatFlags::NoFollowSymlink)?;
    Ok(Node::at(&parent, name)?)
}

/// Returns whether a directory or its contents changed, or may have changed, after this time. Examines at most `left`
/// entries and reduces `left` by the number examined.
pub(crate) fn changed_after(directory: &Path, time: Time, left: &mut usize) -> bool {
    let Ok(root) = open_directory(directory) else { return false };
    let mut open = vec![PathBuf::from(".")];
    while let Some(below) = open.pop() {
        let Ok(directory) = open_below(&root, &below, OFlag::O_RDONLY | OFlag::O_DIRECTORY) else { continue };
        if fstat(&directory).is_ok_and(|stat| Node::from_stat(&stat).changed > time) {
            return true;
        }
        for name in names(&directory).unwrap_or_default() {
            let Some(rest) = left.checked_sub(1) else { return true };
            *left = rest;
            match Node::at(&directory, &name) {
                Ok(Some(node)) if node.changed > time => return true,
                Ok(Some(node)) if node.kind == NodeKind::Directory => open.push(below.join(name)),
                Ok(_) | Err(_) => {}
            }
        }
    }
    false
}
