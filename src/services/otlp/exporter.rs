//! Exporter that sends the records of one signal to an OTLP receiver.

use super::settings::{ExportSettings, Signal, resource_attributes};
use super::transcode::{rejected_count, to_protobuf};
use super::{Attributes, SCHEMA_URL};
use crate::config::{Environment, OtlpEndpoint};
use crate::services::delivery::{SendFailure, SendResult, read_response};
use crate::sys::http::{HttpServer, Reply, Timeouts};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::OnceLock;

/// Maximum size of a response in bytes.
const RESPONSE_BYTES: usize = 64 << 10;

/// Handling of records that the receiver permanently rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Loss {
    /// Drop the records and count them.
    Drops,
    /// Retry the records later.
    Retries,
}

/// Exporter for one signal.
pub(in super::super) struct Exporter {
    endpoint: OtlpEndpoint,
    signal: Signal,
    environment: Environment,
    loss: Loss,
    connection: OnceLock<Result<ReceiverConnection, String>>,
}

struct ReceiverConnection {
    settings: ExportSettings,
    server: HttpServer,
    resource: Value,
}

impl Exporter {
    pub(in super::super) fn new(endpoint: OtlpEndpoint, signal: Signal, environment: Environment, loss: Loss) -> Self {
        Self { endpoint, signal, environment, loss, connection: OnceLock::new() }
    }

    /// Returns whether an address for this signal is configured.
    pub(in super::super) fn has_address(&self) -> bool {
        ExportSettings::has_address(&self.endpoint, self.signal, &self.environment)
    }

    fn connection(&self) -> Result<&ReceiverConnection, String> {
        let open = || {
            let settings = ExportSettings::read(&self.endpoint, self.signal, &self.environment)?;
            let timeouts = Timeouts { connect: settings.timeout, idle: settings.timeout };
            let server = HttpServer::new(&settings.url, timeouts).map_err(|error| error.to_string())?;
            let mut attributes = Attributes::default();
            for (name, value) in resource_attributes(&self.environment) {
                attributes.text(&name, Some(&value));
            }
            Ok(ReceiverConnection { settings, server, resource: json!({"attributes": attributes.into_value()}) })
        };
        self.connection.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    /// Sends records, which must all belong to this exporter's signal.
    pub(in super::super) async fn send(&self, records: Vec<Value>) -> SendResult {
        let count = records.len();
        let failed = |failure| SendResult { failure: Some(failure), ..SendResult::default() };
        let connection = match self.connection() {
            Ok(connection) => connection,
            Err(message) => return failed(SendFailure::new(message)),
        };
        let reply = match connection.post(self.signal, records).await {
            Ok(reply) => reply,
            Err(message) => return failed(SendFailure::new(message)),
        };
        let (status, line) = (reply.status(), reply.status_line());
        let retry_after = reply.retry_after();
        let limits = (RESPONSE_BYTES, connection.settings.timeout);
        let body = read_response(reply, limits, connection.server.host()).await;
        if (200..300).contains(&status) {
            return match body {
                Ok(body) => {
                    let rejected = rejected(&body.unwrap_or_default()).min(count as u64);
                    SendResult { done: count, rejected, failure: None }
                }
                Err(failure) => failed(failure),
            };
        }
        let is_final = (400..500).contains(&status) && ![408, 413, 429].contains(&status);
        let is_too_large = status == 413;
        if self.loss == Loss::Drops && (is_final || is_too_large && count == 1) {
            tracing::warn!(status = line, count, "the receiver rejected telemetry");
            return SendResult { done: count, rejected: count as u64, failure: None };
        }
        let message = format!("`{}` responded with {line}", connection.server.host());
        failed(SendFailure { retry_after, is_too_large, ..SendFailure::new(message) })
    }
}

impl ReceiverConnection {
    async fn post(&self, signal: Signal, records: Vec<Value>) -> Result<Reply, String> {
        let request = self.request(signal, records);
        let (body, content_type) = if self.settings.is_json {
            (request.to_string().into_bytes(), "application/json")
        } else {
            (to_protobuf(&request), "application/x-protobuf")
        };
        let mut headers = self.settings.headers.clone();
        let body = if self.settings.is_gzip {
            headers.push(("content-encoding".into(), "gzip".to_owned()));
            compress(&body).map_err(|error| error.to_string())?
        } else {
            body
        };
        let sent = self.server.post_as(content_type, &headers, body.into());
        match tokio::time::timeout(self.settings.timeout, sent).await {
            Ok(reply) => reply.map_err(|error| error.to_string()),
            Err(_) => Err(format!("`{}` did not respond in time", self.server.host())),
        }
    }

    fn request(&self, signal: Signal, records: Vec<Value>) -> Value {
        let scope = json!({"name": "aye", "version": env!("CARGO_PKG_VERSION")});
        let (outer, middle, inner) = match signal {
            Signal::Logs => ("resourceLogs", "scopeLogs", "logRecords"),
            Signal::Traces => ("resourceSpans", "scopeSpans", "spans"),
            Signal::Metrics => ("resourceMetrics", "scopeMetrics", "metrics"),
        };
        let scoped = json!({"scope": scope, inner: records, "schemaUrl": SCHEMA_URL});
        json!({outer: [{"resource": self.resource, middle: [scoped], "schemaUrl": SCHEMA_URL}]})
    }
}

fn compress(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

/// Returns the number of rejected records reported by a response in either encoding.
fn rejected(body: &[u8]) -> u64 {
    let Ok(response) = serde_json::from_slice::<Value>(body) else { return rejected_count(body) };
    let partial = &response["partialSuccess"];
    let number = |name: &str| partial[name].as_u64().or_else(|| partial[name].as_str()?.parse().ok());
    ["rejectedLogRecords", "rejectedSpans", "rejectedDataPoints"].into_iter().find_map(number).unwrap_or_default()
}
