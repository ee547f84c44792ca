//! Task that delivers the rows of all sinks during a session.

use super::{DrainEnd, Receiver, drain};
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often to check again for rows that another process is delivering, because that process may have ended.
const OTHER_OWNER: Duration = Duration::from_secs(30);
/// Maximum time to wait on exit for an outstanding response, without which the same records would have to be sent
/// again.
const GRACE: Duration = Duration::from_millis(200);
/// Delay before accessing an unusable store again.
const STORE_ERROR: Duration = Duration::from_secs(60);

/// Handle to a running delivery, which stops when the handle is dropped. Rows that have not been acknowledged by then
/// stay in the outbox.
pub(crate) struct DeliveryTask {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl DeliveryTask {
    pub(in super::super) fn start(store: &Store, receivers: &[Arc<dyn Receiver>], commits: &watch::Sender<u64>) -> Self {
        let stop = CancellationToken::new();
        let deliver = |receiver: &Arc<dyn Receiver>| deliver(store.clone(), receiver.clone(), commits.subscribe(), stop.clone());
        let sinks: Vec<_> = receivers.iter().map(deliver).collect();
        let task = tokio::spawn(async move {
            futures_util::future::join_all(sinks).await;
        });
        Self { task, stop }
    }

    /// Stops the delivery, waiting briefly for the request in progress to complete.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(GRACE, &mut self.task).await.is_err() {
            self.task.abort();
            let _ = (&mut self.task).await;
        }
    }
}

impl Drop for DeliveryTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Delivers the rows of a single sink until `stop` is cancelled. A slow or unavailable service does not hold up other
/// sinks.
async fn deliver(store: Store, receiver: Arc<dyn Receiver>, mut commits: watch::Receiver<u64>, stop: CancellationToken) {
    loop {
        commits.borrow_and_update();
        let result = drain(&store, &receiver, false, &stop).await;
        let next = async {
            match result.end {
                DrainEnd::Empty => {
                    // Without a sender, no further rows can arrive.
                    if commits.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                // This also ends when a row is committed, because the owner may have exited.
                DrainEnd::HeldBy(_) => {
                    let changed = async {
                        if commits.changed().await.is_err() {
                            std::future::pending::<()>().await;
                        }
                    };
                    let _ = tokio::time::timeout(OTHER_OWNER, changed).await;
                }
                // Rows that are committed before the next attempt also wait for that attempt.
                DrainEnd::Failed { message, next } => {
                    tracing::warn!(sink = result.sink.as_str(), message, "cannot deliver records");
                    tokio::time::sleep(until(next)).await;
                }
                DrainEnd::NotBefore(time) => tokio::time::sleep(until(time)).await,
                DrainEnd::Unreadable(error) => {
                    tracing::warn!(sink = result.sink.as_str(), error, "cannot read the outbox");
                    tokio::time::sleep(STORE_ERROR).await;
                }
                DrainEnd::Stopped => {}
            }
        };
        tokio::select! {
            () = next => {}
            () = stop.cancelled() => return,
        }
    }
}

fn until(time: jiff::Timestamp) -> Duration {
    Duration::try_from(time.duration_since(jiff::Timestamp::now())).unwrap_or_default()
}
