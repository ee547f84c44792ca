//! Telemetry: spans and metrics of sessions, with the semantic conventions for GenAI. It may be dropped.

mod feed;
mod metric;

pub(super) use feed::TelemetryFeed;

use super::delivery::{Receiver, SendResult};
use super::otlp::{Exporter, Loss, Signal};
use crate::config::{Environment, TelemetrySettings};
use crate::ports::BoxFuture;
use crate::store::{OutboxRow, OutboxSink};
use serde_json::Value;

/// Kinds of rows.
const SPAN: &str = "span";
const METRIC: &str = "metric";
/// Maximum number and size of spans and metrics in a request.
const BATCH: (usize, usize) = (256, 256 << 10);

/// Receiver of spans and metrics.
pub(super) struct TelemetryReceiver {
    spans: Exporter,
    metrics: Exporter,
}

impl TelemetryReceiver {
    pub(super) fn new(settings: &TelemetrySettings, environment: &Environment) -> Self {
        let exporter = |signal| Exporter::new(settings.endpoint.clone(), signal, environment.clone(), Loss::Drops);
        Self { spans: exporter(Signal::Traces), metrics: exporter(Signal::Metrics) }
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
            let parsed = |kind: &str| -> Vec<Value> {
                rows.iter().filter(|row| row.kind == kind).filter_map(|row| serde_json::from_slice(&row.body).ok()).collect()
            };
            let (spans, metrics) = (parsed(SPAN), metric::merge(parsed(METRIC)));
            let mut result = SendResult { done: rows.len(), ..SendResult::default() };
            for (exporter, records) in [(&self.spans, spans), (&self.metrics, metrics)] {
                if records.is_empty() {
                    continue;
                }
                let sent = exporter.send(records).await;
                result.rejected += sent.rejected;
                if sent.failure.is_some() {
                    // A span that is sent again has the same ID.
                    return SendResult { done: 0, rejected: 0, failure: sent.failure };
                }
            }
            result
        })
    }
}
