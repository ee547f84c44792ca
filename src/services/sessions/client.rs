//! Client of the session service: the requests of the handshake, with a few attempts and a time limit.

use super::end::cancel_request;
use super::policy::CAPABILITIES;
use super::response::{Handshake, HandshakeError, ParsedHandshake, error_message, read};
use crate::config::{Credentials, Environment, SessionServiceSettings};
use crate::ports::{BoxFuture, ServiceSession};
use crate::protocol::{Problem, SessionId, StepId};
use crate::services::delivery::{Receiver, SendFailure, SendResult};
use crate::services::secret::read_secret;
use crate::store::{OutboxRow, OutboxSink};
use crate::sys::http::{Headers, HttpServer, Reply, Timeouts};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum time of a handshake with all attempts.
const TOTAL_TIME: Duration = Duration::from_secs(8);
/// Time limits of a request.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(3), idle: Duration::from_secs(5) };
/// Maximum time of a request with its response.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Number of attempts, and the delay before the second one, which doubles.
const ATTEMPTS: u32 = 3;
const DELAY: Duration = Duration::from_millis(200);
/// Maximum size of a response, in bytes.
const RESPONSE_BYTES: usize = 4 << 20;
/// Maximum number and size of rows that are read at once. Each row is sent separately.
const BATCH: (usize, usize) = (64, 64 << 10);

/// The configured session service. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionService(Arc<Inner>);

struct Inner {
    settings: SessionServiceSettings,
    environment: Environment,
    credentials: Credentials,
}

/// Session to register or to resume.
pub(crate) struct SessionOpening {
    pub session_id: SessionId,
    /// Directory of the session.
    pub workspace: String,
    /// Earlier registration with this service, which is resumed.
    pub earlier: Option<ServiceSession>,
    /// Last completed step.
    pub step_cursor: Option<StepId>,
}

/// Result of one attempt.
enum RequestAttempt {
    Done(ParsedHandshake),
    Retry { why: String, after: Option<Duration> },
    Failed(HandshakeError),
}

impl SessionService {
    pub(crate) fn new(settings: SessionServiceSettings, environment: Environment, credentials: Credentials) -> Self {
        Self(Arc::new(Inner { settings, environment, credentials }))
    }

    /// Returns true if no session starts without the service.
    pub(crate) fn is_required(&self) -> bool {
        self.0.settings.required
    }

    pub(crate) fn url(&self) -> &str {
        &self.0.settings.url
    }

    /// Registers a session, or resumes it if this service knows it. A session that has ended there is registered again.
    pub(crate) async fn open(&self, opening: &SessionOpening) -> Result<Handshake, HandshakeError> {
        let end = Instant::now() + TOTAL_TIME;
        let Some(earlier) = self.earlier(opening) else { return self.register(opening, end).await };
        match self.request_resume(opening, earlier, end).await? {
            ParsedHandshake::Ended => {
                let mut handshake = self.register(opening, end).await?;
                let (old, new) = (&earlier.session_id, &handshake.session.session_id);
                handshake
                    .notices
                    .push(format!("the session service ended session `{old}`; this session is registered as `{new}`"));
                Ok(handshake)
            }
            read => self.accepted(read),
        }
    }

    /// Resumes a session, so that its policy is renewed. Returns `None` if the session has ended.
    pub(crate) async fn resume(&self, opening: &SessionOpening) -> Result<Option<Handshake>, HandshakeError> {
        let Some(earlier) = self.earlier(opening) else {
            return Err(self.refused("the session is not registered", "start aye again"));
        };
        match self.request_resume(opening, earlier, Instant::now() + TOTAL_TIME).await? {
            ParsedHandshake::Ended => Ok(None),
            read => self.accepted(read).map(Some),
        }
    }

    fn earlier<'a>(&self, opening: &'a SessionOpening) -> Option<&'a ServiceSession> {
        opening.earlier.as_ref().filter(|earlier| earlier.url == self.url())
    }

    async fn request_resume(
        &self,
        opening: &SessionOpening,
        earlier: &ServiceSession,
        end: Instant,
    ) -> Result<ParsedHandshake, HandshakeError> {
        let body = json!({
            "checkpointCursor": opening.step_cursor,
            "policyBundleVersion": earlier.policy_bundle_version,
            "clientInfo": client_info(),
            "supportedCapabilities": CAPABILITIES,
        });
        let path = format!("/sessions/{}/resume", earlier.session_id);
        self.request(&path, &body, (opening, Some(earlier)), end).await
    }

    async fn register(&self, opening: &SessionOpening, end: Instant) -> Result<Handshake, HandshakeError> {
        let body = json!({
            "clientInfo": client_info(),
            "supportedCapabilities": CAPABILITIES,
            "workspaceHint": opening.workspace,
        });
        let read = self.request("/sessions", &body, (opening, None), end).await?;
        self.accepted(read)
    }

    fn accepted(&self, read: ParsedHandshake) -> Result<Handshake, HandshakeError> {
        match read {
            ParsedHandshake::Accepted(handshake) => Ok(*handshake),
            ParsedHandshake::Ended => Err(self.refused("the session has ended", "start a new session")),
            ParsedHandshake::Rejected(why, hint) => Err(self.refused(&why, hint)),
        }
    }

    fn refused(&self, why: &str, hint: &str) -> HandshakeError {
        HandshakeError::Refused(self.problem(why).hint(hint))
    }

    fn problem(&self, why: &str) -> Problem {
        Problem::new(format!("cannot open a session with the session service `{}`", self.url())).because(why)
    }

    /// Sends a request until there is a complete response, no attempt is left, or the time is up.
    async fn request(
        &self,
        path: &str,
        body: &Value,
        (opening, resumed): (&SessionOpening, Option<&ServiceSession>),
        end: Instant,
    ) -> Result<ParsedHandshake, HandshakeError> {
        let headers = self.headers(&format!("{}-{}", opening.session_id, uuid::Uuid::new_v4().simple())).await?;
        let (mut why, mut delay) = ("the requests took too long".to_owned(), DELAY);
        for attempt in 1..=ATTEMPTS {
            let left = end.saturating_duration_since(Instant::now()).min(REQUEST_TIME);
            let sent = self.attempt(path, &headers, body, (opening, resumed));
            let after = match tokio::time::timeout(left, sent).await {
                Ok(RequestAttempt::Done(read)) => return Ok(read),
                Ok(RequestAttempt::Failed(error)) => return Err(error),
                Ok(RequestAttempt::Retry { why: new, after }) => {
                    why = new;
                    after
                }
                Err(_) => {
                    why = format!("no complete response within {} s", REQUEST_TIME.as_secs());
                    None
                }
            };
            delay = after.unwrap_or(delay).max(delay);
            let left = end.saturating_duration_since(Instant::now());
            if attempt == ATTEMPTS || delay >= left {
                break;
            }
            tokio::time::sleep(delay).await;
            delay *= 2;
        }
        Err(HandshakeError::NoAnswer(why))
    }

    async fn attempt(
        &self,
        path: &str,
        headers: &Headers,
        body: &Value,
        (opening, resumed): (&SessionOpening, Option<&ServiceSession>),
    ) -> RequestAttempt {
        let reply = match self.send(path, headers, body).await {
            Ok(reply) => reply,
            Err(why) => return RequestAttempt::Retry { why, after: None },
        };
        let (status, line, after) = (reply.status(), reply.status_line(), retry_after(&reply));
        let body = match reply.into_body(RESPONSE_BYTES).await {
            Ok(Some(body)) => body,
            Ok(None) => return RequestAttempt::Failed(self.refused("the response is too large", "ask the owner of the service")),
            Err(error) => return RequestAttempt::Retry { why: error.to_string(), after: None },
        };
        let said = || error_message(&body).map(|message| format!(": {message}")).unwrap_or_default();
        match status {
            200..=299 => RequestAttempt::Done(read(&body, self.url(), &opening.session_id, resumed, Timestamp::now())),
            404 | 409 | 410 if resumed.is_some() => RequestAttempt::Done(ParsedHandshake::Ended),
            408 | 429 | 500..=599 => RequestAttempt::Retry { why: format!("the service responded with {line}{}", said()), after },
            401 => {
                let problem = self.problem(&format!("the service responded with {line}{}", said()));
                let hint = "set `services.sessions.token` in config.toml to a valid token";
                RequestAttempt::Failed(HandshakeError::Unauthorized(problem.hint(hint)))
            }
            _ => {
                let why = format!("the service responded with {line}{}", said());
                RequestAttempt::Failed(self.refused(&why, "ask the owner of the session service for access"))
            }
        }
    }

    /// Returns the headers of a request. All attempts have the same key, so that the service registers only one
    /// session.
    async fn headers(&self, key: &str) -> Result<Headers, HandshakeError> {
        let mut headers: Headers =
            vec![("accept".into(), "application/json".to_owned()), ("idempotency-key".into(), key.to_owned())];
        if let Some(reference) = &self.0.settings.token {
            let token = read_secret(reference, &self.0.environment, &self.0.credentials).await.map_err(|why| {
                HandshakeError::Unauthorized(self.problem(&why).hint("`services.sessions.token` in config.toml names the token"))
            })?;
            headers.push(("authorization".into(), format!("Bearer {token}")));
        }
        Ok(headers)
    }

    async fn send(&self, path: &str, headers: &Headers, body: &Value) -> Result<Reply, String> {
        let server = HttpServer::new(&format!("{}{path}", self.url()), TIMEOUTS).map_err(|error| error.to_string())?;
        server.post_as("application/json", headers, body.to_string().into()).await.map_err(|error| error.to_string())
    }

    /// Sends the end of a session, and returns the number of ends that the service permanently rejected. A service that
    /// does not know the session needs no notification.
    async fn send_end(&self, row: &OutboxRow) -> Result<u64, SendFailure> {
        let Some((url, path, body)) = cancel_request(&row.body).filter(|(url, ..)| url == self.url()) else { return Ok(0) };
        let headers = self.headers(&row.id).await.map_err(|error| SendFailure::new(error.one_line()))?;
        let sent = async {
            let reply = self.send(&path, &headers, &body).await.map_err(SendFailure::new)?;
            let (status, line, after) = (reply.status(), reply.status_line(), retry_after(&reply));
            let _ = reply.into_body(RESPONSE_BYTES).await;
            let failed = || Err(SendFailure { retry_after: after, ..SendFailure::new(format!("`{url}` responded with {line}")) });
            match status {
                200..=299 | 404 | 409 | 410 => Ok(0),
                401 | 408 | 429 => failed(),
                400..=499 => {
                    tracing::warn!(status = line, "the session service rejected the end of a session");
                    Ok(1)
                }
                _ => failed(),
            }
        };
        tokio::time::timeout(REQUEST_TIME, sent).await.unwrap_or_else(|_| Err(SendFailure::new("no response in time")))
    }
}

fn client_info() -> Value {
    json!({"name": "aye", "version": env!("CARGO_PKG_VERSION")})
}

fn retry_after(reply: &Reply) -> Option<Duration> {
    reply.header("retry-after")?.trim().parse().ok().map(Duration::from_secs)
}

impl Receiver for SessionService {
    fn sink(&self) -> OutboxSink {
        OutboxSink::Sessions
    }

    fn batch(&self) -> (usize, usize) {
        BATCH
    }

    fn send<'a>(&'a self, rows: &'a [OutboxRow]) -> BoxFuture<'a, SendResult> {
        Box::pin(async move {
            let mut result = SendResult::default();
            for row in rows {
                match self.send_end(row).await {
                    Ok(rejected) => {
                        result.done += 1;
                        result.rejected += rejected;
                    }
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
