//! Commands that go on while the agent works: put there by the person, listed, and ended with the session.

use super::{Host, servers};
use crate::agent::limits::QUIT_GRACE_MS;
use crate::protocol::{CallId, EventKind, RunningCommand};
use std::time::Duration;
use tokio::sync::watch;

/// The list of them once it changed; never ready where there is none.
pub(super) async fn next_list(list: &mut Option<watch::Receiver<Vec<RunningCommand>>>) -> Vec<RunningCommand> {
    if let Some(open) = list
        && open.changed().await.is_ok()
    {
        return open.borrow_and_update().clone();
    }
    *list = None;
    std::future::pending().await
}

impl Host {
    /// Lets a running command go on in the background; without an id, the one that runs longest.
    pub(super) fn background(&mut self, id: Option<&CallId>) {
        let here = |id: &CallId| self.runs.values().find(|running| running.is_command && running.id == *id);
        let longest = || {
            let waiting = |running: &&super::calls::Running| running.is_command && !running.background.is_cancelled();
            self.runs.values().filter(waiting).min_by_key(|running| running.since)
        };
        if let Some(running) = id.map_or_else(longest, here) {
            running.background.cancel();
        } else {
            let message = "no running command can be moved to the background".to_owned();
            self.emit(None, None, EventKind::Notice { message });
        }
    }

    /// The session is over: nothing of it runs on, and what was only looked at is put away.
    pub(super) async fn end_what_runs(&mut self) {
        let router = self.router.clone();
        let ended = async { tokio::join!(router.end_commands(), self.previews.end(), servers::end(self.servers.take())) };
        if tokio::time::timeout(Duration::from_millis(QUIT_GRACE_MS), ended).await.is_err() {
            tracing::warn!("some commands did not end in time");
        }
    }
}
