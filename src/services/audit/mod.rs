//! Audit: log records created from every session's journal and decision log, and delivered at least once.

mod feed;

pub(super) use feed::AuditFeed;

use super::delivery::{Receiver, SendResult};
use super::otlp::{Attributes, Exporter, Loss, Signal, nanos};
use crate::config::{AuditSettings, Environment};
use crate::ports::BoxFuture;
use crate::store::{GAP, OutboxRow, OutboxSink};
use serde_json::{Value, json};

/// Maximum number and total size in bytes of the records in a request.
const BATCH: (usize, usize) = (256, 256 << 10);

/// Receiver that exports audit records over OTLP.
pub(super) struct AuditReceiver(Exporter);

impl AuditReceiver {
    pub(super) fn new(settings: &AuditSettings, environment: &Environment) -> Self {
        Self(Exporter::new(settings.endpoint.clone(), Signal::Logs, environment.clone(), Loss::Retries))
    }
}

impl Receiver for AuditReceiver {
    fn sink(&self) -> OutboxSink {
        OutboxSink::Audit
    }

    fn batch(&self) -> (usize, usize) {
        BATCH
    }

    fn send<'a>(&'a self, rows: &'a [OutboxRow]) -> BoxFuture<'a, SendResult> {
        Box::pin(self.0.send(rows.iter().map(record).collect()))
    }
}

/// Returns the log record contained in a row, with the row's idempotency key added.
fn record(row: &OutboxRow) -> Value {
    let mut record = if row.kind == GAP { gap(row) } else { serde_json::from_slice(&row.body).unwrap_or_default() };
    if let Some(attributes) = record.get_mut("attributes").and_then(Value::as_array_mut) {
        attributes.push(json!({"key": "aye.record.id", "value": {"stringValue": row.id}}));
    }
    record
}

/// Returns a log record that reports records missing because the outbox was full or their rows were deleted.
fn gap(row: &OutboxRow) -> Value {
    let gap: Value = serde_json::from_slice(&row.body).unwrap_or_default();
    let mut attributes = Attributes::default();
    attributes.number("aye.gap.records", gap["missing"].as_u64());
    attributes.text("aye.gap.from", gap["from"].as_str());
    attributes.text("aye.gap.until", gap["until"].as_str());
    json!({
        "timeUnixNano": nanos(row.time), "observedTimeUnixNano": nanos(row.time), "severityNumber": 13, "severityText": "WARN",
        "eventName": "aye.gap", "body": {"stringValue": "records are missing: they did not fit in the outbox, or were deleted"},
        "attributes": attributes.into_value(),
    })
}
