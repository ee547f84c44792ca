//! Task that delivers the rows of all sinks while a session runs.

use super::{DrainEnd, Receiver, drain};
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Time after which rows that another process delivers are checked again: it may have ended without delivering them.
const OTHER_OWNER: Duration = Duration::from_secs(30);
/// Time after which an unusable store is tried again.
const STORE_ERROR: Duration = Duration::from_secs(60);

/// Running delivery; it ends when this is dropped. Rows that are not acknowledged by then stay in the outbox.
pub(crate) struct DeliveryTask(JoinHandle<()>);

impl DeliveryTask {
    pub(in super::super) fn start(store: &Store, receivers: &[Arc<dyn Receiver>], commits: &watch::Sender<u64>) -> Self {
        let sinks: Vec<_> =
            receivers.iter().map(|receiver| deliver(store.clone(), receiver.clone(), commits.subscribe())).collect();
        Self(tokio::spawn(async move {
            futures_util::future::join_all(sinks).await;
        }))
    }
}

impl DeliveryTask {
    /// Ends the delivery, and waits until it has ended.
    pub(crate) async fn end(mut self) {
        self.0.abort();
        let _ = (&mut self.0).await;
    }
}

impl Drop for DeliveryTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Delivers one sink for ever. A service that is slow or down delays no other sink.
async fn deliver(store: Store, receiver: Arc<dyn Receiver>, mut commits: watch::Receiver<u64>) {
    loop {
        commits.borrow_and_update();
        let result = drain(&store, &receiver, false).await;
        match result.end {
            DrainEnd::Empty => {
                if commits.changed().await.is_err() {
                    return;
                }
            }
            DrainEnd::HeldBy(_) => {
                // Also ends when a row is committed: the owner may have gone since.
                let _ = tokio::time::timeout(OTHER_OWNER, commits.changed()).await;
            }
            // Rows that are committed before the next attempt wait for it too.
            DrainEnd::Failed { message, next } => {
                tracing::warn!(sink = result.sink.as_str(), message, "cannot deliver records");
                tokio::time::sleep(until(next)).await;
            }
            DrainEnd::NotBefore(time) => tokio::time::sleep(until(time)).await,
            DrainEnd::Unreadable(error) => {
                tracing::warn!(sink = result.sink.as_str(), error, "cannot read the outbox");
                tokio::time::sleep(STORE_ERROR).await;
            }
        }
    }
}

fn until(time: jiff::Timestamp) -> Duration {
    Duration::try_from(time.duration_since(jiff::Timestamp::now())).unwrap_or_default()
}
