//! Policy updates while a session runs, and requests for them.

use crate::agent::limits::RELOAD_SECONDS;
use crate::agent::turn::PolicyChange;
use crate::policy::redact::Redactor;
use crate::ports::ToolRouter;
use crate::protocol::Mode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub(crate) type ReloadRequests = mpsc::UnboundedSender<ReloadRequest>;

/// Request to the watcher of the policy files. Each sender is notified once the resulting updates have been sent.
pub(crate) enum ReloadRequest {
    /// Reload the files.
    Files(oneshot::Sender<()>),
    /// Apply the current tools of MCP servers.
    ServerTools(oneshot::Sender<()>),
}

/// Policy updates while a session runs.
pub(crate) struct PolicyUpdates {
    pub updates: mpsc::Receiver<PolicyUpdate>,
    /// Requests a reload of the files.
    pub reload: ReloadRequests,
    /// Mode in effect, on which the sandbox of commands depends.
    pub modes: watch::Sender<Mode>,
}

pub(crate) enum PolicyUpdate {
    /// The new policy, and a router whose tools follow its limits.
    Accepted {
        change: Box<PolicyChange>,
        router: Arc<dyn ToolRouter>,
        redactor: Arc<Redactor>,
    },
    /// A file is invalid; the current policy stays in effect.
    Rejected {
        message: String,
    },
    Notice {
        message: String,
    },
}

/// Source of policy updates; empty if the session's policy is fixed.
pub(super) struct PolicySource(Option<PolicyUpdates>);

/// A requested reload.
pub(super) struct Reload {
    is_read: oneshot::Receiver<()>,
    deadline: Instant,
}

impl PolicySource {
    pub(crate) fn new(updates: Option<PolicyUpdates>) -> Self {
        Self(updates)
    }

    /// Waits for the next update; never completes without a source.
    pub(crate) async fn next(&mut self) -> Option<PolicyUpdate> {
        match &mut self.0 {
            Some(source) => source.updates.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Returns an update that has arrived.
    pub(crate) fn take_next(&mut self) -> Option<PolicyUpdate> {
        self.0.as_mut().and_then(|source| source.updates.try_recv().ok())
    }

    /// Reports the mode in effect to the source.
    pub(crate) fn set_mode(&self, mode: Mode) {
        if let Some(source) = &self.0 {
            source.modes.send_replace(mode);
        }
    }

    /// Requests a reload of the files without waiting for it. Returns whether the session has a source.
    pub(crate) fn reload_later(&self) -> bool {
        if let Some(source) = &self.0 {
            // A closed channel means that there are no further reloads.
            let _ = source.reload.send(ReloadRequest::Files(oneshot::channel().0));
        }
        self.0.is_some()
    }

    /// Requests a reload whose updates `next_of` returns; `None` if nothing handles reloads.
    pub(crate) fn reload(&self, request: impl FnOnce(oneshot::Sender<()>) -> ReloadRequest) -> Option<Reload> {
        let (read, is_read) = oneshot::channel();
        self.0.as_ref()?.reload.send(request(read)).ok()?;
        Some(Reload { is_read, deadline: Instant::now() + Duration::from_secs(RELOAD_SECONDS) })
    }

    /// Returns the next update of a reload; `None` after the last one.
    pub(crate) async fn next_of(&mut self, reload: &mut Reload) -> Option<PolicyUpdate> {
        tokio::select! {
            biased;
            Some(update) = self.next() => Some(update),
            _ = &mut reload.is_read => None,
            () = tokio::time::sleep_until(reload.deadline) => {
                tracing::warn!("the policy files were not read in time");
                None
            }
        }
    }
}
