//! The commands that go on while the agent works: sessions on a terminal, and what was put in the background.

mod entry;
mod follow;
mod keys;
mod screen;
mod tape;

use crate::sys::process::End;
use crate::sys::process::signal_name;
pub use entry::{Entry, Kind, New, Read, Reads, Typed, locked};
pub use follow::{After, Outcome, finish, in_background, in_front, session};
pub use keys::Key;
pub use tape::Fresh;

use super::confine::Writes;
use crate::protocol::{ErrorCode, RunningCommand, ToolError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Sessions that run at one time.
pub const MAX_SESSIONS: usize = 5;
/// The same for commands in the background.
pub const MAX_IN_BACKGROUND: usize = 5;
/// Of those that ended this many can still be read.
const MAX_ENDED: usize = 5;
/// The list is told anew at most this often while commands print.
const TOLD_EVERY: Duration = Duration::from_millis(250);
/// How long the end of all of them may take.
const END_LIMIT: Duration = Duration::from_secs(3);

/// The list that all routers of a session share.
#[derive(Clone, Default)]
pub struct Commands {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    list: Mutex<List>,
    told: watch::Sender<Vec<RunningCommand>>,
    /// Someone is about to tell.
    soon: AtomicBool,
}

#[derive(Default)]
struct List {
    begun: u64,
    entries: Vec<Arc<Entry>>,
}

impl Commands {
    /// Takes it into the list under a name of its own.
    pub fn admit(&self, entry: &Arc<Entry>) -> Result<(), ToolError> {
        let mut list = locked(&self.inner.list);
        let is_session = |entry: &Entry| matches!(entry.kind, Kind::Session { .. });
        let alike: Vec<&str> = list
            .entries
            .iter()
            .filter(|other| other.ended().is_none() && is_session(other) == is_session(entry))
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
        entry.admitted(format!("s{}", list.begun), Arc::downgrade(&self.inner));
        list.entries.push(Arc::clone(entry));
        let mut surplus = list.entries.iter().filter(|entry| entry.ended().is_some()).count().saturating_sub(MAX_ENDED);
        list.entries.retain(|entry| {
            let goes = surplus > 0 && entry.ended().is_some();
            surplus -= usize::from(goes);
            !goes
        });
        drop(list);
        self.inner.tell();
        Ok(())
    }

    /// Takes it out again, because it did not start.
    pub fn forget(&self, entry: &Entry) {
        locked(&self.inner.list).entries.retain(|other| other.id() != entry.id());
        self.inner.tell();
    }

    pub fn find(&self, id: &str) -> Result<Arc<Entry>, ToolError> {
        let list = locked(&self.inner.list);
        if let Some(entry) = list.entries.iter().find(|entry| entry.id().eq_ignore_ascii_case(id.trim())) {
            return Ok(Arc::clone(entry));
        }
        let ids: Vec<_> = list.entries.iter().map(|entry| entry.id()).collect();
        let there = match &ids[..] {
            [] => "none is running; start one with CliSession".to_owned(),
            ids => format!("known ids: {}", ids.join(", ")),
        };
        Err(ToolError::new(ErrorCode::InvalidRequest, format!("unknown session or background command `{}`; {there}", id.trim())))
    }

    /// The list, whenever it changes.
    pub fn watch(&self) -> watch::Receiver<Vec<RunningCommand>> {
        self.inner.told.subscribe()
    }

    /// Whether one of them has not ended.
    pub(in crate::tools) fn any_runs(&self) -> bool {
        locked(&self.inner.list).entries.iter().any(|entry| entry.ended().is_none())
    }

    /// Whether one that has not ended may write in the workspace.
    pub(in crate::tools) fn any_writes(&self) -> bool {
        let writes = |entry: &Arc<Entry>| entry.ended().is_none() && entry.writes > Writes::Nothing;
        locked(&self.inner.list).entries.iter().any(writes)
    }

    /// Ends one with all it started; nothing happens where there is none of this name.
    pub fn stop(&self, id: &str) {
        if let Ok(entry) = self.find(id) {
            entry.kill.cancel();
        }
    }

    /// Ends all of them, and waits for that as long as it may take.
    pub async fn end_all(&self) {
        let entries = locked(&self.inner.list).entries.clone();
        for entry in &*entries {
            entry.kill.cancel();
        }
        let over = futures_util::future::join_all(entries.iter().map(|entry| entry.over()));
        let _ = timeout(END_LIMIT, over).await;
    }
}

impl Inner {
    /// Says what the list is now, if it is another.
    fn tell(&self) {
        let now: Vec<_> = locked(&self.list).entries.iter().map(|entry| entry.listed()).collect();
        self.told.send_if_modified(|told| {
            let changed = *told != now;
            *told = now;
            changed
        });
    }

    /// The same, but not for every line that some command prints.
    fn tell_soon(self: Arc<Self>) {
        if self.soon.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(async move {
            tokio::time::sleep(TOLD_EVERY).await;
            self.soon.store(false, Ordering::Release);
            self.tell();
        });
    }
}

/// `exit 0`, `killed by SIGKILL`.
pub(in crate::tools) fn how_it_ended(end: End) -> String {
    match end {
        End::Exited(code) => format!("exit {code}"),
        End::Signalled(signal) => format!("killed by {}", signal_name(signal).unwrap_or("a signal")),
        End::TimedOut => "killed after its time limit".to_owned(),
        End::Killed => "stopped".to_owned(),
        End::DiskFull => "killed because the disk was nearly full".to_owned(),
        End::MemoryFull => "killed because its shared memory exceeded the memory limit".to_owned(),
    }
}
