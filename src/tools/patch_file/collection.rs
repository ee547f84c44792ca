//! Changes of a layer as entries and rows of a patch file.

use super::header::{FileEntry, FileState, LeftOutPath};
use super::{MAX_BYTES, MAX_FILE_BYTES, MAX_FILES, body, check_path, is_of_git};
use crate::sys::file;
use crate::sys::overlay::{Change, Changes, Kind, RefusalReason};
use crate::tools::ignored::IgnoreRules;
use std::path::Path;

/// The changes of a task that a patch file contains, and those that it omits.
#[derive(Debug, Default)]
pub(crate) struct CollectedChanges {
    pub files: Vec<FileEntry>,
    pub left_out: Vec<LeftOutPath>,
    body: String,
}

/// State and content of one side of a change; empty if it is missing.
type Side = (Option<FileState>, Vec<u8>);

impl CollectedChanges {
    /// Reads the changes. Directories are omitted without a note, because git does not store them.
    ///
    /// # Errors
    /// The directory was changed by others during the task, the changes exceed a limit, or a file cannot be read.
    pub(crate) fn read(changes: &Changes) -> Result<Self, String> {
        let everything: &dyn Fn(&Path) -> bool = &|_| true;
        let mut ignored = IgnoreRules::new(changes.directory(), everything);
        let mut collected = Self::default();
        for change in changes.entries() {
            if change.kind() == Some(Kind::Directory) {
                continue;
            }
            if let Some(why) = reason_to_leave_out(change, &mut ignored) {
                collected.leave_out(&change.path, why);
                continue;
            }
            if change.before.is_some_and(|before| before.kind == Kind::File && before.changed > changes.start_time()) {
                return Err(format!("`{}` was changed by another program while the task ran", change.path.display()));
            }
            collected.add(change, changes)?;
        }
        for refused in changes.unkept() {
            let why = match refused.why {
                RefusalReason::Special => "a socket, FIFO or device",
                _ => "attributes that a patch cannot contain",
            };
            collected.leave_out(&refused.path, why);
        }
        Ok(collected)
    }

    /// Returns the rows of all files, in the order of the entries.
    pub(super) fn body(&self) -> &str {
        &self.body
    }

    fn leave_out(&mut self, path: &Path, why: &str) {
        self.left_out.push(LeftOutPath { path: path.to_string_lossy().into_owned(), why: why.to_owned() });
    }

    fn add(&mut self, change: &Change, changes: &Changes) -> Result<(), String> {
        let path = change.path.to_str().unwrap_or_default().to_owned();
        let failed = |error: &dyn std::fmt::Display| format!("cannot read `{path}`: {error}");
        let before = side(change.before.map(|node| node.mode), &changes.old(&change.path)).map_err(|error| failed(&error))?;
        // A file of which only the attributes change may have no content in the layer.
        let new = changes.new_content(&change.path);
        let after = side(change.after.map(|node| node.mode), &new).map_err(|error| failed(&error))?;
        let entry = FileEntry { path: path.clone(), base: before.0, result: after.0 };
        if entry.base == entry.result {
            return Ok(());
        }
        self.body.push_str(&body::section(&entry, &before.1, &after.1).map_err(|error| failed(&error))?);
        self.files.push(entry);
        if self.files.len() > MAX_FILES || self.body.len() as u64 > MAX_BYTES / 2 {
            return Err(format!("the task changed more than {MAX_FILES} files, or more than {} MB", MAX_BYTES >> 21));
        }
        Ok(())
    }
}

fn side(mode: Option<u32>, place: &Path) -> Result<Side, file::ReadError> {
    let Some(mode) = mode else { return Ok((None, Vec::new())) };
    let content = file::read(place, MAX_FILE_BYTES)?;
    Ok((Some(FileState::new(&content, mode & 0o100 != 0)), content))
}

fn reason_to_leave_out(change: &Change, ignored: &mut IgnoreRules<'_>) -> Option<&'static str> {
    let kinds = || change.before.iter().chain(&change.after).map(|node| node.kind);
    let is_large = change.before.iter().chain(&change.after).any(|node| node.kind == Kind::File && node.bytes > MAX_FILE_BYTES);
    if is_of_git(&change.path) {
        Some("it is inside `.git`")
    } else if ignored.ignores(change) {
        Some("git ignores it")
    } else if kinds().any(|kind| kind != Kind::File) {
        Some("it is, or was, not a regular file")
    } else if is_large {
        Some("it is larger than 10 MB")
    } else if change.path.to_str().is_none_or(|path| check_path(path).is_err()) {
        Some("a patch cannot contain its name")
    } else {
        None
    }
}
