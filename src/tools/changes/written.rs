//! What aye's own tools wrote while a command ran, so that the command is not credited with it.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes that are known at once; beyond that the oldest are forgotten.
const WRITES: usize = 10_000;

/// The writes of one session while commands run; of other times nothing is kept. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::tools) struct Written {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// Commands that run.
    marks: usize,
    /// Writes until now, those that were forgotten among them.
    count: u64,
    writes: VecDeque<Write>,
}

struct Write {
    path: PathBuf,
    /// When it was done.
    at: Time,
    /// Nothing was left there.
    gone: bool,
}

/// Seconds and nanoseconds, as the times of files have them.
type Time = (i64, i64);

/// The begin of a command.
pub(in crate::tools) struct Mark {
    written: Written,
    since: u64,
}

impl Written {
    pub(in crate::tools) fn mark(&self) -> Mark {
        let mut inner = self.lock();
        inner.marks += 1;
        Mark { written: self.clone(), since: inner.count }
    }

    /// A tool has written, moved or deleted what is at these paths, and all below them.
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

impl Mark {
    /// Whether what is at this path is as one of aye's tools left it since the mark.
    pub(in crate::tools) fn is_of_a_tool(&self, path: &Path) -> bool {
        let inner = self.written.lock();
        let forgotten = inner.count - inner.writes.len() as u64;
        let skipped = usize::try_from(self.since.saturating_sub(forgotten)).unwrap_or(usize::MAX);
        let mut writes = inner.writes.iter().skip(skipped).filter(|write| path.starts_with(&write.path)).peekable();
        if writes.peek().is_none() {
            return false;
        }
        match path.symlink_metadata() {
            // Whoever changes a file, or gives it a name, changes this time of it.
            Ok(metadata) => {
                let changed = (metadata.ctime(), metadata.ctime_nsec());
                writes.any(|write| !write.gone && changed <= write.at)
            }
            Err(_) => writes.any(|write| write.gone),
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut inner = self.written.lock();
        inner.marks -= 1;
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
pub(super) mod tests {
    use super::*;

    /// Waits until the clock that files are stamped by is later than any stamp until now.
    pub(in crate::tools::changes) fn next_tick(directory: &Path) {
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
    fn what_a_tool_wrote_is_its_own_until_something_else_changes_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("before"), "x").unwrap();
        let written = Written::default();
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
        let later = written.mark();
        assert!(!later.is_of_a_tool(&path("kept")), "it was written before this command began");
        drop((mark, later));
        assert!(written.lock().writes.is_empty());
    }
}
