//! Prunes expired data automatically, once a day, in the background.

use super::context::AppContext;
use super::prune;
use crate::host::nesting::Nesting;
use crate::store::Store;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

/// File whose modification time indicates when data was last pruned.
const STAMP: &str = "pruned";
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum time that a process waits for pruning to finish at exit. Any remaining work is done on another day.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Prunes data while a session is running. Pruning is aborted if the process exits first.
pub(crate) fn prune_in_background(app: &AppContext, store: &Store) {
    start(app, store, || {});
}

/// Prunes data at the end of a run.
pub(crate) fn prune_at_end(app: &AppContext, store: &Store) {
    let (done, wait) = channel();
    if start(app, store, move || {
        // The receiver may have stopped waiting.
        let _ = done.send(());
    }) {
        let _ = wait.recv_timeout(TIMEOUT);
    }
}

/// Starts pruning if it is due. Returns whether it was started.
fn start(app: &AppContext, store: &Store, done: impl FnOnce() + Send + 'static) -> bool {
    if Nesting::detect() == Nesting::InsideAye || !is_due(&app.directories.data).unwrap_or(false) {
        return false;
    }
    let (app, store) = (app.clone(), store.clone());
    let thread = std::thread::Builder::new().name("aye-prune".to_owned());
    thread
        .spawn(move || {
            prune::prune_quietly(&app, &store);
            done();
        })
        .is_ok()
}

/// Returns `true` once a day, and to only one process. The first call merely records the time.
fn is_due(data: &Path) -> io::Result<bool> {
    let path = data.join(STAMP);
    let stamp = match OpenOptions::new().write(true).open(&path) {
        Ok(stamp) => stamp,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    // Of two concurrent starts, one checks after the other.
    stamp.lock()?;
    let (last, now) = (stamp.metadata()?.modified()?, SystemTime::now());
    // A time in the future comes from a wrong clock.
    let due = now.duration_since(last).map_or(true, |since| since >= EVERY);
    if due {
        stamp.set_modified(now)?;
    }
    Ok(due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_is_due_once_a_day_and_not_at_the_first_start() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_due(data.path()).unwrap());
        assert!(!is_due(data.path()).unwrap());
        let stamp = OpenOptions::new().write(true).open(data.path().join(STAMP)).unwrap();
        for (ago, due) in [(EVERY + Duration::from_secs(5), true), (Duration::from_secs(5), false)] {
            stamp.set_modified(SystemTime::now() - ago).unwrap();
            assert_eq!(is_due(data.path()).unwrap(), due, "{ago:?}");
        }
        stamp.set_modified(SystemTime::now() + 9 * EVERY).unwrap();
        assert!(is_due(data.path()).unwrap() && !is_due(data.path()).unwrap(), "a clock that was wrong");
    }
}
