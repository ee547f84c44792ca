//! Outbox delivery, performed by a task that sleeps until rows are committed or an attempt is due.

mod task;
#[cfg(test)]
mod tests;

pub(crate) use task::DeliveryTask;

use super::backoff::Backoff;
use crate::ports::BoxFuture;
use crate::store::{ClaimResult, OutboxClaim, OutboxRow, OutboxSink, Store, StoreError};
use crate::sys::http::Reply;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Service to which a sink's rows are delivered.
pub(crate) trait Receiver: Send + Sync {
    fn sink(&self) -> OutboxSink;

    /// Returns the maximum number of rows, and their maximum total size in bytes, per request.
    fn batch(&self) -> (usize, usize);

    /// Sends rows in order. After a failure, the rows that were not sent are passed in again.
    fn send<'a>(&'a self, rows: &'a [OutboxRow]) -> BoxFuture<'a, SendResult>;
}

/// Outcome of sending rows.
#[derive(Debug, Default)]
pub(crate) struct SendResult {
    /// Number of rows, counted from the first one, that the service has received and that must not be sent again.
    pub done: usize,
    /// Number of records that the service permanently rejected.
    pub rejected: u64,
    pub failure: Option<SendFailure>,
}

/// Failed request to a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendFailure {
    pub message: String,
    /// Delay requested by the service, if any.
    pub retry_after: Option<Duration>,
    /// Whether the request was too large, so that one with fewer rows may succeed.
    pub is_too_large: bool,
}

impl SendFailure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry_after: None, is_too_large: false }
    }
}

/// Reads the whole response to a delivery, or returns `None` if it is larger than `limit` bytes. Without a complete
/// response, the receiver may not have stored what was delivered.
pub(in crate::services) async fn read_response(
    reply: Reply,
    (limit, time): (usize, Duration),
    host: &str,
) -> Result<Option<Vec<u8>>, SendFailure> {
    match tokio::time::timeout(time, reply.into_body(limit)).await {
        Ok(body) => body.map_err(|error| SendFailure::new(error.to_string())),
        Err(_) => Err(SendFailure::new(format!("the response of `{host}` is incomplete"))),
    }
}

/// Outcome of delivering a sink's rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DrainResult {
    pub sink: OutboxSink,
    /// Number of rows that were acknowledged.
    pub delivered: u64,
    pub end: DrainEnd,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DrainEnd {
    /// There are no more rows.
    Empty,
    /// The running process with this ID is delivering the rows.
    HeldBy(u32),
    /// The last attempt failed, and the next one is due at time `next`.
    Failed { message: String, next: jiff::Timestamp },
    /// The next attempt is not due until this time.
    NotBefore(jiff::Timestamp),
    /// The store could not be read or written.
    Unreadable(String),
    /// Delivery is being stopped.
    Stopped,
}

/// Delivers a sink's rows until there are none left or an attempt fails. With `at_once`, starts even if the next
/// attempt is not due yet.
pub(super) async fn drain(store: &Store, receiver: &Arc<dyn Receiver>, at_once: bool, stop: &CancellationToken) -> DrainResult {
    let sink = receiver.sink();
    let mut delivered = 0;
    let end = match drain_rows(store, receiver.as_ref(), (at_once, stop), &mut delivered).await {
        Ok(end) => end,
        Err(error) => DrainEnd::Unreadable(error.to_string()),
    };
    DrainResult { sink, delivered, end }
}

async fn drain_rows(
    store: &Store,
    receiver: &dyn Receiver,
    (at_once, stop): (bool, &CancellationToken),
    delivered: &mut u64,
) -> Result<DrainEnd, StoreError> {
    let (claimed, sink) = (store.clone(), receiver.sink());
    let mut claim = match blocking(move || claimed.claim_sink(sink, at_once)).await? {
        ClaimResult::Taken(claim) => Arc::new(claim),
        ClaimResult::Empty => return Ok(DrainEnd::Empty),
        ClaimResult::HeldBy(pid) => return Ok(DrainEnd::HeldBy(pid)),
        ClaimResult::NotBefore(time) => return Ok(DrainEnd::NotBefore(time)),
    };
    let (most, bytes) = receiver.batch();
    let mut size = most;
    loop {
        if stop.is_cancelled() {
            return Ok(DrainEnd::Stopped);
        }
        let reader = claim.clone();
        let rows = blocking(move || reader.rows(0, size, bytes)).await?;
        if rows.is_empty() {
            match release(claim).await? {
                None => return Ok(DrainEnd::Empty),
                Some(again) => claim = Arc::new(again),
            }
            continue;
        }
        let sent = receiver.send(&rows).await;
        if let Some(last) = sent.done.checked_sub(1).and_then(|index| rows.get(index)) {
            let (key, rejected, writer) = (last.key, sent.rejected, claim.clone());
            blocking(move || writer.acknowledge(key, rejected)).await?;
            *delivered += sent.done as u64;
        }
        let Some(failure) = sent.failure else {
            size = most;
            continue;
        };
        if failure.is_too_large && rows.len() > 1 {
            size = rows.len() / 2;
            continue;
        }
        let next = note_failure(&claim, &failure).await?;
        release(claim).await?;
        return Ok(DrainEnd::Failed { message: failure.message, next });
    }
}

/// Records a failed attempt, and returns the time at which the next one is due.
async fn note_failure(claim: &Arc<OutboxClaim>, failure: &SendFailure) -> Result<jiff::Timestamp, StoreError> {
    let (writer, message, requested) = (claim.clone(), failure.message.clone(), failure.retry_after);
    blocking(move || {
        let delay = Backoff::DEFAULT.delay(writer.attempts()?.saturating_add(1), requested);
        let next = jiff::Timestamp::now() + jiff::SignedDuration::try_from(delay).unwrap_or_default();
        writer.fail(&message, next)?;
        Ok(next)
    })
    .await
}

/// Releases a claim. If rows are due, the claim is returned instead.
async fn release(claim: Arc<OutboxClaim>) -> Result<Option<OutboxClaim>, StoreError> {
    match Arc::try_unwrap(claim) {
        Ok(claim) => blocking(move || claim.release_if_idle()).await,
        // All users of the claim have ended, so the last drop releases it.
        Err(_) => Ok(None),
    }
}

/// Runs a store call on a thread that may block.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> Result<T, StoreError> + Send + 'static) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down, so this task ends too.
        Err(_) => std::future::pending().await,
    }
}
