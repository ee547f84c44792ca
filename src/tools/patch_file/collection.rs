//! Converts the changes in a layer to the entries and lines of a patch file.

use super::header::{FileEntry, FileState, OmittedPath};
use super::{MAX_BYTES, MAX_FILE_BYTES, MAX_FILES, body, check_path, is_of_git};
use crate::protocol::FileDiffs;
use crate::sys::file;
use crate::sys::overlay::{Change, Changes, NodeKind, RefusalReason};
use crate::tools::ignored::IgnoreRules;
use std::collections::BTreeSet;
use std::path::Path;

/// The changes of a task that a patch file contains, and those that it omits.
#[derive(Debug, Default)]
pub(crate) struct CollectedChanges {
    pub files: Vec<FileEntry>,
    pub left_out: Vec<OmittedPath>,
    /// Files in the directory that others changed while the task ran, so the task has not seen their current content.
    pub conflicts: Vec<String>,
    /// Patch text for each file.
    sections: Vec<String>,
}

/// Function that returns whether the task has seen the current content of a path.
pub(crate) type SeenContent<'a> = dyn Fn(&Change, Option<&FileState>) -> bool + 'a;

/// State and content of one side of a change. If the side does not exist, both are empty.
type Side = (Option<FileState>, Vec<u8>);

impl CollectedChanges {
    /// Reads the changes. Directories are omitted without a note, because git does not store them.
    ///
    /// # Errors
    /// Returns an error if others changed the directory while the task ran, if the changes exceed a limit, or if a file
    /// cannot be read.
    pub(crate) fn read(changes: &Changes) -> Result<Self, String> {
        let collected = Self::read_with(changes, &|change, _| is_older(change, changes))?;
        match collected.conflicts.first() {
            Some(path) => Err(format!("`{path}` was changed by another program while the task ran")),
            None => Ok(collected),
        }
    }

    /// Reads the changes like [`CollectedChanges::read`], but collects conflicts instead of failing. A file is a
    /// conflict if `is_seen` rejects its current content.
    ///
    /// # Errors
    /// Returns an error if the changes exceed a limit, or if a file cannot be read.
    pub(crate) fn read_with(changes: &Changes, is_seen: &SeenContent<'_>) -> Result<Self, String> {
        let everything: &dyn Fn(&Path) -> bool = &|_| true;
        let mut ignored = IgnoreRules::new(changes.directory(), everything);
        let mut collected = Self::default();
        for change in changes.entries() {
            if change.kind() == Some(NodeKind::Directory) {
                continue;
            }
            if let Some(why) = reason_to_leave_out(change, &mut ignored) {
                collected.leave_out(&change.path, why);
                continue;
            }
            collected.add(change, changes, is_seen)?;
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

    /// Returns the patch text for all files, in the order of the entries.
    pub(super) fn body(&self) -> String {
        self.sections.concat()
    }

    /// Adds the change to one file. Each side consists of its content and whether it is executable. If `is_seen` is
    /// false, the file is recorded as a conflict.
    ///
    /// # Errors
    /// Returns an error if the changes exceed a limit.
    pub(crate) fn add_file(
        &mut self,
        path: &str,
        before: Option<(Vec<u8>, bool)>,
        after: Option<(Vec<u8>, bool)>,
        is_seen: bool,
    ) -> Result<(), String> {
        if check_path(path).is_err() {
            self.leave_out(Path::new(path), "a patch cannot contain its name");
            return Ok(());
        }
        let side = |content: Option<(Vec<u8>, bool)>| match content {
            Some((bytes, is_executable)) => (Some(FileState::new(&bytes, is_executable)), bytes),
            None => (None, Vec::new()),
        };
        self.push(path.to_owned(), (side(before), side(after)), |_| is_seen)
    }

    /// Records a change that is omitted from the collection, with the reason.
    pub(crate) fn leave_out(&mut self, path: &Path, why: &str) {
        self.left_out.push(OmittedPath { path: path.to_string_lossy().into_owned(), why: why.to_owned() });
    }

    /// Removes the files that `is_chosen` rejects.
    pub(crate) fn retain(&mut self, is_chosen: impl Fn(&str) -> bool) {
        let all = std::mem::take(&mut self.files).into_iter().zip(std::mem::take(&mut self.sections));
        (self.files, self.sections) = all.filter(|(entry, _)| is_chosen(&entry.path)).unzip();
    }

    /// Reduces a change to some of its hunks, which are given by index. `base` is the content on which the change is
    /// based.
    ///
    /// # Errors
    /// Returns an error if the file has no change, or if the change is not based on this content.
    pub(crate) fn choose_hunks(&mut self, path: &str, base: &[u8], hunks: &BTreeSet<usize>) -> Result<(), String> {
        let failed = || format!("`{path}` changed while its hunks were chosen");
        let index = self.files.iter().position(|entry| entry.path == path).ok_or_else(failed)?;
        let (entry, section) = (&mut self.files[index], &mut self.sections[index]);
        let (Some(old), Some(result)) = (&entry.base, &entry.result) else { return Err(failed()) };
        if FileState::digest(base) != old.sha256 {
            return Err(failed());
        }
        let mut diff = FileDiffs::read(section).iter().next().cloned().ok_or_else(failed)?;
        let all = std::mem::take(&mut diff.hunks).into_iter().enumerate();
        diff.hunks = all.filter(|(number, _)| hunks.contains(number)).map(|(_, hunk)| hunk).collect();
        let content = body::apply(&diff, base)?;
        entry.result = Some(FileState { sha256: FileState::digest(&content), mode: result.mode.clone() });
        *section = body::section(entry, base, &content).map_err(|error| error.to_string())?;
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.sections.iter().map(String::len).sum()
    }

    fn add(&mut self, change: &Change, changes: &Changes, is_seen: &SeenContent<'_>) -> Result<(), String> {
        let path = change.path.to_str().unwrap_or_default().to_owned();
        let failed = |error: &dyn std::fmt::Display| format!("cannot read `{path}`: {error}");
        let before = side(change.before.map(|node| node.mode), &changes.old(&change.path)).map_err(|error| failed(&error))?;
        // If only the attributes of a file change, the layer may not contain its content.
        let new = changes.new_content(&change.path);
        let after = side(change.after.map(|node| node.mode), &new).map_err(|error| failed(&error))?;
        self.push(path, (before, after), |state| is_seen(change, state))
    }

    fn push(
        &mut self,
        path: String,
        (before, after): (Side, Side),
        is_seen: impl FnOnce(Option<&FileState>) -> bool,
    ) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot read `{path}`: {error}");
        let entry = FileEntry { path: path.clone(), base: before.0, result: after.0 };
        if entry.base == entry.result {
            return Ok(());
        }
        if !is_seen(entry.base.as_ref()) {
            self.conflicts.push(path);
            return Ok(());
        }
        self.sections.push(body::section(&entry, &before.1, &after.1).map_err(|error| failed(&error))?);
        self.files.push(entry);
        if self.files.len() > MAX_FILES || self.bytes() as u64 > MAX_BYTES / 2 {
            return Err(format!("the task changed more than {MAX_FILES} files, or more than {} MB", MAX_BYTES >> 21));
        }
        Ok(())
    }
}

/// Returns whether the old content of a file has not changed since the task began.
pub(crate) fn is_older(change: &Change, changes: &Changes) -> bool {
    change.before.is_none_or(|before| before.kind != NodeKind::File || before.changed <= changes.start_time())
}

fn side(mode: Option<u32>, place: &Path) -> Result<Side, file::ReadError> {
    let Some(mode) = mode else { return Ok((None, Vec::new())) };
    let content = file::read(place, MAX_FILE_BYTES)?;
    Ok((Some(FileState::new(&content, mode & 0o100 != 0)), content))
}

fn reason_to_leave_out(change: &Change, ignored: &mut IgnoreRules<'_>) -> Option<&'static str> {
    let kinds = || change.before.iter().chain(&change.after).map(|node| node.kind);
    let is_large =
        change.before.iter().chain(&change.after).any(|node| node.kind == NodeKind::File && node.bytes > MAX_FILE_BYTES);
    if is_of_git(&change.path) {
        Some("the file is inside `.git`")
    } else if ignored.ignores(change) {
        Some("git ignores the file")
    } else if kinds().any(|kind| kind != NodeKind::File) {
        Some("the file is not, or was not, a regular file")
    } else if is_large {
        Some("the file is larger than 10 MB")
    } else if change.path.to_str().is_none_or(|path| check_path(path).is_err()) {
        Some("a patch cannot contain its name")
    } else {
        None
    }
}
