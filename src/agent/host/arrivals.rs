//! Inputs that the host waits for besides commands.

use super::{Host, PolicyUpdate, ReloadRequest};
use crate::agent::limits::RELOAD_SECONDS;
use crate::agent::secrets::LastNet;
use crate::agent::turn::{Input, InputTime, PolicyChange};
use crate::ports::{Delta, ModelError, ModelStream};
use crate::protocol::{EventKind, Failure, FailureKind};
use futures_util::StreamExt;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

pub(super) async fn next_update(updates: &mut Option<mpsc::Receiver<PolicyUpdate>>) -> Option<PolicyUpdate> {
    match updates {
        Some(open) => open.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for the next part of the response; never completes while none is streaming. A stream that ends without completion was cut off.
pub(super) async fn next_delta(stream: &mut Option<ModelStream>) -> Input {
    let Some(open) = stream else { return std::future::pending().await };
    match open.next().await {
        Some(Ok(delta)) => {
            if matches!(delta, Delta::Completed(_)) {
                *stream = None;
            }
            Input::Delta(delta)
        }
        Some(Err(error)) => {
            *stream = None;
            Input::ModelFailed(error)
        }
        None => {
            *stream = None;
            let failure = Failure::new(
                FailureKind::CutStream,
                "the response was cut off before it ended",
                "check the connection, then continue",
            );
            Input::ModelFailed(ModelError::from(failure))
        }
    }
}

pub(super) fn moment() -> InputTime {
    // A random number without a generator: these bytes of a version 4 ID are random.
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    InputTime { now: Timestamp::now(), jitter: f64::from(random) / f64::from(u32::MAX) }
}

impl Host {
    /// Applies pending updates before an input is processed, so that a tool that announces others is followed by them.
    pub(super) async fn take_updates(&mut self, updates: &mut Option<mpsc::Receiver<PolicyUpdate>>) {
        while let Some(update) = updates.as_mut().and_then(|open| open.try_recv().ok()) {
            if let Some(change) = self.updated(update) {
                self.take(Input::PolicyChanged(change)).await;
            }
        }
    }

    /// Reloads the policy files, and applies the result before anything else happens.
    pub(super) async fn reload_policy(&mut self, updates: &mut Option<mpsc::Receiver<PolicyUpdate>>) {
        self.request_reload(ReloadRequest::Files, updates).await;
    }

    /// Applies the current tools of MCP servers before anything else happens.
    pub(super) async fn take_server_tools(&mut self, updates: &mut Option<mpsc::Receiver<PolicyUpdate>>) {
        self.request_reload(ReloadRequest::ServerTools, updates).await;
    }

    async fn request_reload(
        &mut self,
        request: impl FnOnce(oneshot::Sender<()>) -> ReloadRequest,
        updates: &mut Option<mpsc::Receiver<PolicyUpdate>>,
    ) {
        let Some(reload) = &self.reload else { return };
        let (read, mut is_read) = oneshot::channel();
        if reload.send(request(read)).is_err() {
            return;
        }
        let late = tokio::time::sleep(Duration::from_secs(RELOAD_SECONDS));
        tokio::pin!(late);
        loop {
            let update = tokio::select! {
                biased;
                Some(update) = next_update(updates) => update,
                _ = &mut is_read => return,
                () = &mut late => {
                    tracing::warn!("the policy files were not read in time");
                    return;
                }
            };
            if let Some(change) = self.updated(update) {
                self.take(Input::PolicyChanged(change)).await;
            }
        }
    }

    /// Returns the part of an update that the machine needs.
    pub(super) fn updated(&mut self, update: PolicyUpdate) -> Option<Box<PolicyChange>> {
        let told = match update {
            PolicyUpdate::Taken { change, router, redactor } => {
                self.emit(None, None, change.sandbox_status.clone().into());
                self.shared_router.send_replace(Arc::clone(&router));
                self.router = router;
                self.redactor = redactor;
                // The new redactor may hide more than the old one.
                self.last_net = LastNet::default();
                return Some(change);
            }
            PolicyUpdate::Rejected { message } => EventKind::PolicyRejected { message },
            PolicyUpdate::Told { message } => EventKind::Notice { message },
        };
        self.emit(None, None, told);
        None
    }

    /// Removes secrets from user input before it is saved or sent.
    pub(super) fn without_secrets(&mut self, input: Input) -> Input {
        let Input::Command(command) = input else { return input };
        let (command, notice) = crate::agent::secrets::hide_in_command(&self.redactor, command);
        if let Some(message) = notice {
            self.emit(None, None, EventKind::Notice { message });
        }
        Input::Command(command)
    }
}
