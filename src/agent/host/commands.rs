//! Background commands: moved there by the user, listed, and ended with the session.

use super::{Host, servers};
use crate::agent::limits::QUIT_GRACE_MS;
use crate::protocol::{CallId, EventKind, RunningCommand};
use std::time::Duration;
use tokio::sync::watch;

/// Waits until the list changes; never completes without a list.
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
    /// Moves a running command to the background; without an ID, the one that has run longest.
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

    /// Ends all running commands, and discards previews, at the end of the session.
    pub(super) async fn end_what_runs(&mut self) {
        let router = self.router.clone();
        let ended = async { tokio::join!(router.end_commands(), self.previews.end(), servers::end(self.servers.take())) };
        if tokio::time::timeout(Duration::from_millis(QUIT_GRACE_MS), ended).await.is_err() {
            tracing::warn!("some commands did not end in time");
        }
    }
}
