//! Telemetry: session spans and metrics that follow the GenAI semantic conventions. Telemetry data may be dropped.

mod feed;
mod metric;

pub(super) use feed::TelemetryFeed;

use super::delivery::{Receiver, SendFailure, SendResult};
use super::otlp::{Exporter, Loss, Signal};
use crate::config::{Environment, TelemetrySettings};
use crate::ports::BoxFuture;
use crate::store::{OutboxRow, OutboxSink};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Kind of an outbox row that contains a span.
const SPAN: &str = "span";
const METRIC: &str = "metric";
/// Maximum number and total size in bytes of the spans and metrics in a request.
const BATCH: (usize, usize) = (256, 256 << 10);
/// Maximum number of delivered rows to remember while earlier rows have not been delivered.
const MAX_AHEAD: usize = 4 * BATCH.0;

/// Receiver for spans and metrics, which are sent in separate requests. If only one request fails, the data of the
/// other is not sent again.
pub(super) struct TelemetryReceiver {
    spans: Exporter,
    metrics: Exporter,
    ahead: Mutex<FinishedRows>,
}

/// Rows that have been delivered although earlier rows have not.
#[derive(Default)]
struct FinishedRows {
    /// IDs of the delivered rows.
    rows: HashSet<String>,
    /// Number of records in these rows that were rejected or dropped.
    rejected: u64,
}

impl TelemetryReceiver {
    pub(super) fn new(settings: &TelemetrySettings, environment: &Environment) -> Self {
        let exporter = |signal| Exporter::new(settings.endpoint.clone(), signal, environment.clone(), Loss::Drops);
        Self { spans: exporter(Signal::Traces), metrics: exporter(Signal::Metrics), ahead: Mutex::default() }
    }

    fn ahead(&self) -> MutexGuard<'_, FinishedRows> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends those rows of one kind that have not been delivered yet. Returns the failure, if there is one.
    async fn send_kind(&self, kind: &str, rows: &[OutboxRow]) -> Option<SendFailure> {
        let rows: Vec<&OutboxRow> = {
            let ahead = self.ahead();
            rows.iter().filter(|row| row.kind == kind && !ahead.rows.contains(&row.id)).collect()
        };
        let records: Vec<Value> = rows.iter().filter_map(|row| serde_json::from_slice(&row.body).ok()).collect();
        let (exporter, other, records) = match kind {
            SPAN => (&self.spans, &self.metrics, records),
            _ => (&self.metrics, &self.spans, metric::merge(records)),
        };
        let mut rejected = 0;
        if !exporter.has_address() && other.has_address() {
            // The variables configure a receiver only for data of the other kind.
            rejected = rows.len() as u64;
        } else if !records.is_empty() {
            let sent = exporter.send(records).await;
            if sent.failure.is_some() {
                return sent.failure;
            }
            rejected = sent.rejected;
        }
        let mut ahead = self.ahead();
        ahead.rows.extend(rows.iter().map(|row| row.id.clone()));
        ahead.rejected += rejected;
        None
    }
}

impl Receiver for TelemetryReceiver {
    fn sink(&self) -> OutboxSink {
        OutboxSink::Telemetry
    }

    fn batch(&self) -> (usize, usize) {
        BATCH
    }

    fn send<'a>(&'a self, rows: &'a [OutboxRow]) -> BoxFuture<'a, SendResult> {
        Box::pin(async move {
            let spans = self.send_kind(SPAN, rows).await;
            let metrics = self.send_kind(METRIC, rows).await;
            let mut ahead = self.ahead();
            // Rows of other kinds need no delivery.
            let waits = |row: &OutboxRow| [SPAN, METRIC].contains(&row.kind.as_str()) && !ahead.rows.contains(&row.id);
            let done = rows.iter().position(waits).unwrap_or(rows.len());
            for row in &rows[..done] {
                ahead.rows.remove(&row.id);
            }
            let rejected = if done == 0 { 0 } else { std::mem::take(&mut ahead.rejected) };
            // Other processes may have delivered the remaining rows.
            if ahead.rows.len() > MAX_AHEAD {
                ahead.rows.clear();
            }
            SendResult { done, rejected, failure: spans.or(metrics) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OtlpEndpoint;
    use serde_json::json;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn row(id: &str, kind: &str) -> OutboxRow {
        let body = json!({"name": id, "histogram": {"dataPoints": []}}).to_string().into_bytes();
        OutboxRow { key: 1, id: id.to_owned(), time: jiff::Timestamp::UNIX_EPOCH, kind: kind.to_owned(), body }
    }

    /// Returns a receiver for the addresses that these variables contain.
    fn receiver(variables: &[(&str, String)]) -> TelemetryReceiver {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let settings = TelemetrySettings { endpoint: OtlpEndpoint::Environment, content: false };
        TelemetryReceiver::new(&settings, &Environment::from_pairs(variables))
    }

    /// Starts a server that accepts all requests. Returns its address and the number of requests received so far.
    fn accepting() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/v1/any", listener.local_addr().unwrap());
        let count = Arc::<AtomicUsize>::default();
        let counted = count.clone();
        std::thread::spawn(move || {
            // If a connection closes before its request is read, reading ends with an error.
            let mut open = Vec::new();
            for mut stream in listener.incoming().flatten() {
                let mut request = vec![0; 64 << 10];
                let _ = stream.read(&mut request);
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}");
                open.push(stream);
            }
        });
        (url, count)
    }

    #[tokio::test]
    async fn failed_spans_do_not_resend_metrics() {
        let (url, count) = accepting();
        let closed = "http://127.0.0.1:1".to_owned();
        let receiver = receiver(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", closed), ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", url)]);
        let rows = [row("m1", METRIC), row("s1", SPAN), row("m2", METRIC)];
        let sent = receiver.send(&rows).await;
        assert_eq!((sent.done, sent.failure.is_some()), (1, true), "the rows before the span are done");
        let sent = receiver.send(&rows[1..]).await;
        assert_eq!((sent.done, sent.failure.is_some()), (0, true));
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn rows_without_an_address_are_dropped_and_counted() {
        let (url, _) = accepting();
        let receiver = receiver(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", url)]);
        let sent = receiver.send(&[row("s1", SPAN), row("m1", METRIC)]).await;
        assert_eq!((sent.done, sent.rejected, sent.failure), (2, 1, None));
    }
}
