//! Policy updates for a running session, and requests to reload the policy.

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

/// Request to the policy file watcher. The given sender is notified once all resulting updates have been sent.
pub(crate) enum ReloadRequest {
    /// Reload the policy files.
    Files(oneshot::Sender<()>),
    /// Apply the current MCP server tools.
    ServerTools(oneshot::Sender<()>),
}

/// Channels for policy updates while a session runs.
pub(crate) struct PolicyUpdates {
    pub updates: mpsc::Receiver<PolicyUpdate>,
    /// Sender for reload requests.
    pub reload: ReloadRequests,
    /// Sender for the mode in effect, which determines the command sandbox.
    pub modes: watch::Sender<Mode>,
}

pub(crate) enum PolicyUpdate {
    /// New policy, with a router whose tools respect its limits.
    Accepted {
        change: Box<PolicyChange>,
        router: Arc<dyn ToolRouter>,
        redactor: Arc<Redactor>,
    },
    /// A policy file is invalid. The current policy remains in effect.
    Rejected {
        message: String,
    },
    Notice {
        message: String,
    },
}

/// Source of policy updates; empty if the session's policy cannot change.
pub(super) struct PolicySource(Option<PolicyUpdates>);

/// Reload in progress. It ends once all of its updates have been sent, or at the deadline.
pub(super) struct Reload {
    is_read: oneshot::Receiver<()>,
    deadline: Instant,
}

impl PolicySource {
    pub(crate) fn new(updates: Option<PolicyUpdates>) -> Self {
        Self(updates)
    }

    /// Waits for the next update. Never completes if there is no source.
    pub(crate) async fn next(&mut self) -> Option<PolicyUpdate> {
        match &mut self.0 {
            Some(source) => source.updates.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the next update if one has already arrived.
    pub(crate) fn take_next(&mut self) -> Option<PolicyUpdate> {
        self.0.as_mut().and_then(|source| source.updates.try_recv().ok())
    }

    /// Informs the source of the mode in effect.
    pub(crate) fn set_mode(&self, mode: Mode) {
        if let Some(source) = &self.0 {
            source.modes.send_replace(mode);
        }
    }

    /// Requests a reload of the policy files without waiting for it. Returns whether the session has a source of
    /// updates.
    pub(crate) fn reload_later(&self) -> bool {
        if let Some(source) = &self.0 {
            // If the channel is closed, the policy can no longer be reloaded.
            let _ = source.reload.send(ReloadRequest::Files(oneshot::channel().0));
        }
        self.0.is_some()
    }

    /// Requests a reload, whose updates are returned by `next_of`. Returns `None` if nothing handles reload requests.
    pub(crate) fn reload(&self, request: impl FnOnce(oneshot::Sender<()>) -> ReloadRequest) -> Option<Reload> {
        let (read, is_read) = oneshot::channel();
        self.0.as_ref()?.reload.send(request(read)).ok()?;
        Some(Reload { is_read, deadline: Instant::now() + Duration::from_secs(RELOAD_SECONDS) })
    }

    /// Returns the next update that a reload produces, or `None` once the reload has ended.
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
