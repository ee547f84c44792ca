//! Records which files aye's own tools write while a command is running, so they are not attributed to the command.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of writes to record. Beyond it, the oldest ones are dropped.
const WRITES: usize = 10_000;

/// Writes that one session made while marks were in use. Other writes are not recorded. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::tools) struct ToolWrites {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Number of marks in use by running commands and other comparisons.
    marks: usize,
    /// Number of marks for commands for which a call is waiting.
    commands: usize,
    /// Number of commands that have been started.
    begun: u64,
    /// Number of writes so far, including those that have been dropped.
    count: u64,
    writes: VecDeque<Write>,
}

#[derive(Debug)]
struct Write {
    path: PathBuf,
    /// Time of the write.
    at: Time,
    /// Whether the path was deleted.
    gone: bool,
}

/// Timestamp in seconds and nanoseconds, as in file metadata.
type Time = (i64, i64);

/// Marks the start of a command, or of another operation that aye performs in the workspace.
#[derive(Debug)]
pub(in crate::tools) struct WriteMark {
    written: ToolWrites,
    since: u64,
    /// Number of commands that had been started at that point, including this one.
    number: u64,
    /// Whether another command was already running at that point.
    after_others: bool,
    is_command: bool,
}

impl ToolWrites {
    /// Creates a mark that does not belong to a command.
    pub(in crate::tools) fn mark(&self) -> WriteMark {
        let mut inner = self.lock();
        inner.marks += 1;
        let (since, number) = (inner.count, inner.begun);
        WriteMark { written: self.clone(), since, number, after_others: false, is_command: false }
    }

    /// Marks the start of a command. `others_go_on` says whether a command for which no call waits is already running.
    pub(in crate::tools) fn command(&self, others_go_on: bool) -> WriteMark {
        let mut inner = self.lock();
        let after_others = others_go_on || inner.commands > 0;
        inner.marks += 1;
        inner.commands += 1;
        inner.begun += 1;
        let (since, number) = (inner.count, inner.begun);
        WriteMark { written: self.clone(), since, number, after_others, is_command: true }
    }

    /// Records that a tool has written, moved or deleted these paths along with everything below them.
    pub(in crate::tools) fn note(&self, paths: &[PathBuf]) {
        let mut inner = self.lock();
        if inner.marks == 0 {
            return;
        }
        let at = now();
        for path in paths {
            let gone = path.symlink_metadata().is_err();
            inner.writes.push_back(Write { path: path.clone(), at, gone });
            inner.count += 1;
        }
        let over = inner.writes.len().saturating_sub(WRITES);
        inner.writes.drain(..over);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriteMark {
    /// Returns whether another command has been running at any time since this one started. Changes may have been made
    /// by either of them.
    pub(in crate::tools) fn overlaps_others(&self) -> bool {
        self.after_others || self.written.lock().begun > self.number
    }

    /// Returns a copy of this mark, for a command that continues in the background.
    pub(in crate::tools) fn for_background(&self) -> Self {
        let mut inner = self.written.lock();
        inner.marks += 1;
        Self { written: self.written.clone(), is_command: false, ..*self }
    }

    /// Returns whether one of aye's tools has written this path, one of its parents, or a path below it since the mark.
    pub(in crate::tools) fn is_touched_by_a_tool(&self, path: &Path) -> bool {
        let inner = self.written.lock();
        self.writes_since(&inner).any(|write| path.starts_with(&write.path) || write.path.starts_with(path))
    }

    fn writes_since<'a>(&self, inner: &'a Inner) -> impl Iterator<Item = &'a Write> {
        let forgotten = inner.count - inner.writes.len() as u64;
        let skipped = usize::try_from(self.since.saturating_sub(forgotten)).unwrap_or(usize::MAX);
        inner.writes.iter().skip(skipped)
    }

    /// Returns whether one of aye's tools has written the path since the mark, and it has not changed since then.
    pub(in crate::tools) fn is_of_a_tool(&self, path: &Path) -> bool {
        let inner = self.written.lock();
        let mut writes = self.writes_since(&inner).filter(|write| path.starts_with(&write.path)).peekable();
        if writes.peek().is_none() {
            return false;
        }
        match path.symlink_metadata() {
            // Changing or renaming a file updates its `ctime`.
            Ok(metadata) => {
                let changed = (metadata.ctime(), metadata.ctime_nsec());
                writes.any(|write| !write.gone && changed <= write.at)
            }
            Err(_) => writes.any(|write| write.gone),
        }
    }
}

impl Drop for WriteMark {
    fn drop(&mut self) {
        let mut inner = self.written.lock();
        inner.marks -= 1;
        inner.commands -= usize::from(self.is_command);
        if inner.marks == 0 {
            inner.writes.clear();
        }
    }
}

fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(now.as_secs()).unwrap_or(i64::MAX), i64::from(now.subsec_nanos()))
}

#[cfg(test)]
pub(in crate::tools) mod tests {
    use super::*;

    /// Waits until the file system's clock has advanced beyond every timestamp so far.
    pub(in crate::tools) fn next_tick(directory: &Path) {
        let stamp = || {
            std::fs::write(directory.join("clock"), "x").unwrap();
            let metadata = directory.join("clock").metadata().unwrap();
            (metadata.ctime(), metadata.ctime_nsec())
        };
        let (first, passed) = (stamp(), now());
        while stamp() <= first.max(passed) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn overlapping_commands_are_detected() {
        let written = ToolWrites::default();
        let first = written.command(false);
        assert!(!first.overlaps_others());
        let own = written.mark();
        assert!(!first.overlaps_others(), "aye's own marker is not a command");
        drop(own);
        let after = first.for_background();
        let second = written.command(false);
        drop(second);
        assert!(first.overlaps_others() && after.overlaps_others(), "another command ran in the meantime");
        drop(first);
        assert!(!written.command(false).overlaps_others(), "it started after the others had ended");
        assert!(written.command(true).overlaps_others(), "a command still runs in the background");
        drop(after);
        let inner = written.lock();
        assert_eq!((inner.marks, inner.commands), (0, 0));
    }

    #[test]
    fn a_write_is_attributed_to_the_tool_until_another_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("before"), "x").unwrap();
        let written = ToolWrites::default();
        written.note(&[path("before")]);
        let mark = written.mark();
        for name in ["kept", "changed", "tree"] {
            if name == "tree" {
                std::fs::create_dir(path(name)).unwrap();
                std::fs::write(path("tree/moved"), "x").unwrap();
            } else {
                std::fs::write(path(name), "x").unwrap();
            }
        }
        written.note(&[path("kept"), path("changed"), path("tree"), path("deleted"), path("made-again")]);
        next_tick(directory.path());
        std::fs::write(path("changed"), "y").unwrap();
        std::fs::write(path("tree/new"), "y").unwrap();
        std::fs::write(path("made-again"), "y").unwrap();
        std::fs::write(path("other"), "y").unwrap();
        for (name, own) in [
            ("kept", true),
            ("tree/moved", true),
            ("deleted", true),
            ("deleted/below", true),
            ("changed", false),
            ("tree/new", false),
            ("made-again", false),
            ("other", false),
            ("before", false),
        ] {
            assert_eq!(mark.is_of_a_tool(&path(name)), own, "{name}");
        }
        for (name, touched) in
            [("tree", true), ("tree/new", true), ("changed", true), ("", true), ("other", false), ("before", false)]
        {
            assert_eq!(mark.is_touched_by_a_tool(&path(name)), touched, "{name}");
        }
        let later = written.mark();
        assert!(!later.is_of_a_tool(&path("kept")), "it was written before this command began");
        drop((mark, later));
        assert!(written.lock().writes.is_empty());
    }
}
