//! Approval service client, which sends signed messages over HTTP.

use super::signature::Signer;
use crate::config::ApprovalServiceSettings;
use crate::ports::BoxFuture;
use crate::services::delivery::{Receiver, SendFailure, SendResult, read_response};
use crate::services::secret::SecretSources;
use crate::store::{GAP, OutboxRow, OutboxSink};
use crate::sys::http::{Headers, HttpServer, Reply, Timeouts};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Maximum time to wait for the service to respond to a decision record.
const RECORD_TIME: Duration = Duration::from_secs(15);
/// Maximum time for which a request for a decision stays open. The service responds once it has reached a decision.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(60);
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Maximum size of a response in bytes.
pub(super) const RESPONSE_BYTES: usize = 64 << 10;
/// Maximum number and total size in bytes of decisions to read at a time. Each decision is sent in a separate message.
const BATCH: (usize, usize) = (128, 1 << 20);

/// The configured approval service. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct ApprovalService(pub(super) Arc<Inner>);

pub(super) struct Inner {
    settings: ApprovalServiceSettings,
    secrets: SecretSources,
    records: OnceLock<HttpServer>,
    questions: OnceLock<HttpServer>,
}

/// Message to the service: the ID and body, which the signature covers, and a time limit.
pub(super) struct ServiceMessage<'a> {
    pub id: &'a str,
    pub body: Bytes,
    /// Maximum time to wait for the response headers.
    pub patience: Duration,
}

impl ApprovalService {
    pub(crate) fn new(settings: ApprovalServiceSettings, secrets: SecretSources) -> Self {
        let (records, questions) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Inner { settings, secrets, records, questions }))
    }

    /// Returns whether aye asks the service to make decisions.
    pub(crate) fn decides(&self) -> bool {
        self.0.settings.ask
    }

    /// Returns the host name of the service, for use in messages.
    pub(crate) fn host(&self) -> String {
        url::Url::parse(&self.0.settings.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Returns the signing key. This may wait several seconds for the keyring, or up to a minute for a program.
    pub(super) async fn signer(&self) -> Result<Signer, String> {
        let secret = self.0.secrets.read("approvals", &self.0.settings.secret, None).await?;
        Signer::new(&secret).map_err(str::to_owned)
    }

    /// Sends a signed message and returns the response as soon as its headers have arrived.
    pub(super) async fn post(&self, signer: &Signer, message: ServiceMessage<'_>, is_question: bool) -> Result<Reply, String> {
        let slot = if is_question { &self.0.questions } else { &self.0.records };
        let server = if let Some(server) = slot.get() {
            server
        } else {
            let idle = if is_question { QUESTION_TIME } else { RECORD_TIME };
            let server = HttpServer::new(&self.0.settings.url, Timeouts { connect: CONNECT_TIME, idle });
            let server = server.map_err(|error| error.to_string())?;
            slot.get_or_init(|| server)
        };
        let timestamp = jiff::Timestamp::now().as_second().to_string();
        let signature = signer.sign(message.id, &timestamp, &message.body);
        let headers: Headers = vec![
            ("webhook-id".into(), message.id.to_owned()),
            ("webhook-timestamp".into(), timestamp),
            ("webhook-signature".into(), signature),
        ];
        match tokio::time::timeout(message.patience, server.post("", &headers, message.body)).await {
            Ok(reply) => reply.map_err(|error| error.to_string()),
            Err(_) => Err(format!("`{}` did not respond in time", server.host())),
        }
    }

    async fn send_row(&self, signer: &Signer, row: &OutboxRow) -> Result<(), SendFailure> {
        let body = if row.kind == GAP { gap_body(row) } else { row.body.clone() };
        let message = ServiceMessage { id: &format!("msg_{}", row.id), body: body.into(), patience: RECORD_TIME };
        let reply = self.post(signer, message, false).await.map_err(SendFailure::new)?;
        let (status, line, retry_after) = (reply.status(), reply.status_line(), reply.retry_after());
        // Reading the whole body also allows the connection to be reused.
        let body = read_response(reply, (RESPONSE_BYTES, RECORD_TIME), &self.host()).await;
        if (200..300).contains(&status) {
            return body.map(drop);
        }
        Err(SendFailure { retry_after, ..SendFailure::new(format!("`{}` responded with {line}", self.host())) })
    }
}

/// Returns the body of a message that reports decisions missing because the outbox was full.
fn gap_body(row: &OutboxRow) -> Vec<u8> {
    let gap: Value = serde_json::from_slice(&row.body).unwrap_or_default();
    json!({"type": "approval.gap", "timestamp": row.time.to_string(), "data": gap}).to_string().into_bytes()
}

impl Receiver for ApprovalService {
    fn sink(&self) -> OutboxSink {
        OutboxSink::Approvals
    }

    fn batch(&self) -> (usize, usize) {
        BATCH
    }

    fn send<'a>(&'a self, rows: &'a [OutboxRow]) -> BoxFuture<'a, SendResult> {
        Box::pin(async move {
            let mut result = SendResult::default();
            let signer = match self.signer().await {
                Ok(signer) => signer,
                Err(message) => return SendResult { failure: Some(SendFailure::new(message)), ..result },
            };
            for row in rows {
                match self.send_row(&signer, row).await {
                    Ok(()) => result.done += 1,
                    Err(failure) => {
                        result.failure = Some(failure);
                        break;
                    }
                }
            }
            result
        })
    }
}
