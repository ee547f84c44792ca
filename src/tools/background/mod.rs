//! Commands that continue to run while the agent works: terminal sessions and background commands.

mod entry;
mod keys;
mod report;
mod ring_buffer;
mod screen;
mod wait;

use crate::sys::process::{End, signal_name};
pub(crate) use entry::{BackgroundCommand, BackgroundKind, InputLanguage, NewCommand, PendingInput, lock_ignoring_poison};
pub(crate) use keys::Key;
pub(crate) use report::{first_line, new_output, screen_text};
pub(crate) use wait::{After, WaitOutcome, finish, in_background, run_in_foreground, session};

use super::sandbox::Writes;
use crate::protocol::{ErrorCode, RunningCommand, ToolError};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum number of sessions that may run at a time.
pub(crate) const MAX_SESSIONS: usize = 5;
/// Maximum number of background commands that may run at a time.
pub(crate) const MAX_IN_BACKGROUND: usize = 5;
/// Number of commands that have ended whose output can still be read.
const MAX_ENDED: usize = 5;
/// Minimum interval between updates of the list while commands produce output.
const UPDATE_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum time to wait for all commands to end.
const END_LIMIT: Duration = Duration::from_secs(3);

/// List of commands, shared by all routers in a session.
#[derive(Clone, Default)]
pub(crate) struct Commands {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    list: Mutex<List>,
    told: watch::Sender<Vec<RunningCommand>>,
    /// Whether an update of the list has been scheduled.
    soon: AtomicBool,
    /// Whether the session is ending.
    over: AtomicBool,
}

#[derive(Default)]
struct List {
    begun: u64,
    entries: Vec<Arc<BackgroundCommand>>,
}

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commands").finish_non_exhaustive()
    }
}

impl Commands {
    /// Adds a command to the list and assigns its ID. Fails if too many commands of the same kind are running.
    pub(crate) fn admit(&self, entry: &Arc<BackgroundCommand>) -> Result<(), ToolError> {
        let mut list = lock_ignoring_poison(&self.inner.list);
        let is_session = |entry: &BackgroundCommand| matches!(entry.kind, BackgroundKind::Session { .. });
        let alike: Vec<&str> = list
            .entries
            .iter()
            .filter(|other| other.end_reason().is_none() && is_session(other) == is_session(entry))
            .map(|other| other.id())
            .collect();
        let (most, what) =
            if is_session(entry) { (MAX_SESSIONS, "sessions") } else { (MAX_IN_BACKGROUND, "background commands") };
        if alike.len() >= most {
            let message =
                format!("{most} {what} are running ({}), and no more are allowed; stop one with CliStop", alike.join(", "));
            return Err(ToolError::new(ErrorCode::InvalidRequest, message));
        }
        list.begun += 1;
        entry.set_id(format!("s{}", list.begun), Arc::downgrade(&self.inner));
        list.entries.push(Arc::clone(entry));
        let mut surplus = list.entries.iter().filter(|entry| entry.end_reason().is_some()).count().saturating_sub(MAX_ENDED);
        list.entries.retain(|entry| {
            let goes = surplus > 0 && entry.end_reason().is_some();
            surplus -= usize::from(goes);
            !goes
        });
        drop(list);
        self.inner.publish();
        Ok(())
    }

    /// Removes a command that failed to start from the list.
    pub(crate) fn forget(&self, entry: &BackgroundCommand) {
        lock_ignoring_poison(&self.inner.list).entries.retain(|other| other.id() != entry.id());
        self.inner.publish();
    }

    pub(crate) fn find(&self, id: &str) -> Result<Arc<BackgroundCommand>, ToolError> {
        let list = lock_ignoring_poison(&self.inner.list);
        if let Some(entry) = list.entries.iter().find(|entry| entry.id().eq_ignore_ascii_case(id.trim())) {
            return Ok(Arc::clone(entry));
        }
        let ids: Vec<_> = list.entries.iter().map(|entry| entry.id()).collect();
        let there = match &ids[..] {
            [] => "no session is running; start one with CliSession".to_owned(),
            ids => format!("known IDs: {}", ids.join(", ")),
        };
        Err(ToolError::new(ErrorCode::InvalidRequest, format!("unknown session or background command `{}`; {there}", id.trim())))
    }

    /// Returns a receiver for updates of the list.
    pub(crate) fn watch(&self) -> watch::Receiver<Vec<RunningCommand>> {
        self.inner.told.subscribe()
    }

    /// Returns whether any command is still running.
    pub(in crate::tools) fn has_running(&self) -> bool {
        lock_ignoring_poison(&self.inner.list).entries.iter().any(|entry| entry.end_reason().is_none())
    }

    /// Returns whether any running command may write to the workspace.
    pub(in crate::tools) fn has_writing(&self) -> bool {
        let writes = |entry: &Arc<BackgroundCommand>| entry.end_reason().is_none() && entry.writes > Writes::Nothing;
        lock_ignoring_poison(&self.inner.list).entries.iter().any(writes)
    }

    /// Ends a command and all of its processes. Does nothing if the ID is unknown.
    pub(crate) fn stop(&self, id: &str) {
        if let Ok(entry) = self.find(id) {
            entry.kill.cancel();
        }
    }

    /// Returns whether the session, and with it all commands, is ending.
    pub(in crate::tools) fn is_ended(&self) -> bool {
        self.inner.over.load(Ordering::Acquire)
    }

    /// Ends all commands because the session is ending, and waits at most `END_LIMIT` for them to exit.
    pub(crate) async fn end_all(&self) {
        self.inner.over.store(true, Ordering::Release);
        let entries = lock_ignoring_poison(&self.inner.list).entries.clone();
        for entry in &*entries {
            entry.kill.cancel();
        }
        let over = futures_util::future::join_all(entries.iter().map(|entry| entry.over()));
        let _ = timeout(END_LIMIT, over).await;
    }
}

impl Inner {
    /// Publishes the list if it has changed.
    fn publish(&self) {
        let now: Vec<_> = lock_ignoring_poison(&self.list).entries.iter().map(|entry| entry.to_running_command()).collect();
        self.told.send_if_modified(|told| {
            let changed = *told != now;
            *told = now;
            changed
        });
    }

    /// Publishes the list after a delay, so frequent updates are combined.
    fn publish_debounced(self: Arc<Self>) {
        if self.soon.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            tokio::time::sleep(UPDATE_INTERVAL).await;
            self.soon.store(false, Ordering::Release);
            self.publish();
        });
    }
}

/// Describes how a process ended, for example as `exit 0` or `killed by SIGKILL`.
pub(in crate::tools) fn describe_process_end(end: End) -> String {
    match end {
        End::Exited(code) => format!("exit {code}"),
        End::Signalled(signal) => format!("killed by {}", signal_name(signal).unwrap_or("a signal")),
        End::TimedOut => "killed after its time limit".to_owned(),
        End::Killed => "stopped".to_owned(),
        End::Interrupted => "interrupted by the user".to_owned(),
        End::DiskFull => "killed because the disk was nearly full".to_owned(),
        End::LayerFull => "killed because it wrote more than `layer_mb` in the policy allows".to_owned(),
        End::MemoryFull => "killed because its shared memory exceeded the memory limit".to_owned(),
    }
}
