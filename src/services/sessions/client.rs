//! Session service client, which sends handshake requests with a limited number of attempts and a time limit.

use super::end::cancel_request;
use super::policy::CAPABILITIES;
use super::response::{Handshake, HandshakeError, ParsedHandshake, check_owner, error_message, read};
use crate::config::{SecretReference, SessionServiceSettings};
use crate::ports::{BoxFuture, ServiceSession};
use crate::protocol::{Problem, SessionId, StepId};
use crate::services::backoff::Backoff;
use crate::services::delivery::{Receiver, SendFailure, SendResult};
use crate::services::secret::SecretSources;
use crate::store::{OutboxRow, OutboxSink};
use crate::sys::http::{Headers, HttpServer, Reply, Timeouts};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum total duration of a handshake, including all attempts.
const TOTAL_TIME: Duration = Duration::from_secs(8);
/// Time limits of a request.
const TIMEOUTS: Timeouts = Timeouts { connect: Duration::from_secs(3), idle: Duration::from_secs(5) };
/// Maximum duration of a request, including its response.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Maximum number of attempts per request.
const ATTEMPTS: u32 = 3;
const DELAYS: Backoff = Backoff { first: Duration::from_millis(400), max: Duration::from_secs(2) };
/// Maximum size of a response in bytes.
const RESPONSE_BYTES: usize = 4 << 20;
/// Maximum number and total size in bytes of rows to read at a time. Each row is sent in a separate request.
const BATCH: (usize, usize) = (64, 64 << 10);

/// The configured session service. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionService(Arc<Inner>);

struct Inner {
    settings: SessionServiceSettings,
    secrets: SecretSources,
}

/// Session that is about to be registered or resumed.
pub(crate) struct SessionOpening {
    pub session_id: SessionId,
    /// Session directory.
    pub workspace: String,
    /// Earlier registration with this service that should be resumed.
    pub earlier: Option<ServiceSession>,
    /// Earlier registration with this service that a new registration of this session replaces.
    pub replaced: Option<ServiceSession>,
    /// The last step that was completed.
    pub step_cursor: Option<StepId>,
}

/// Outcome of a single attempt.
enum RequestAttempt {
    Done(ParsedHandshake),
    Retry { why: String, after: Option<Duration> },
    Failed(HandshakeError),
}

impl SessionService {
    pub(crate) fn new(settings: SessionServiceSettings, secrets: SecretSources) -> Self {
        Self(Arc::new(Inner { settings, secrets }))
    }

    /// Returns whether sessions must not start without the service.
    pub(crate) fn is_required(&self) -> bool {
        self.0.settings.required
    }

    pub(crate) fn url(&self) -> &str {
        &self.0.settings.url
    }

    /// Registers a session, or resumes it if it is already registered with this service. If the service has ended the
    /// session in the meantime, it is registered again.
    pub(crate) async fn open(&self, opening: &SessionOpening) -> Result<Handshake, HandshakeError> {
        // A program that prints the token may prompt the user, so its time does not count toward the handshake.
        self.token(None).await?;
        let end = Instant::now() + TOTAL_TIME;
        let Some(earlier) = self.earlier(opening) else {
            return self.register(opening, opening.replaced.as_ref(), end).await;
        };
        match self.request_resume(opening, earlier, end).await? {
            ParsedHandshake::Ended => {
                // A program that printed a new token may have taken longer than the handshake.
                let end = end.max(Instant::now() + TOTAL_TIME);
                let mut handshake = self.register(opening, Some(earlier), end).await?;
                let (old, new) = (&earlier.session_id, &handshake.session.session_id);
                handshake
                    .notices
                    .push(format!("the session service ended session `{old}`; this session is registered as `{new}`"));
                Ok(handshake)
            }
            read => self.accepted(read),
        }
    }

    /// Resumes a session in order to renew its policy. Returns `None` if the session has ended.
    pub(crate) async fn resume(&self, opening: &SessionOpening) -> Result<Option<Handshake>, HandshakeError> {
        let Some(earlier) = self.earlier(opening) else {
            return Err(self.refused("the session is not registered", "start aye again"));
        };
        self.token(None).await?;
        match self.request_resume(opening, earlier, Instant::now() + TOTAL_TIME).await? {
            ParsedHandshake::Ended => Ok(None),
            read => self.accepted(read).map(Some),
        }
    }

    /// Returns the earlier registration, unless it is with a different service.
    pub(crate) fn earlier<'a>(&self, opening: &'a SessionOpening) -> Option<&'a ServiceSession> {
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

    /// Registers a session. `ended` is an earlier registration that has ended, whose tenant and user the new one must
    /// share.
    async fn register(
        &self,
        opening: &SessionOpening,
        ended: Option<&ServiceSession>,
        end: Instant,
    ) -> Result<Handshake, HandshakeError> {
        let body = json!({
            "clientInfo": client_info(),
            "supportedCapabilities": CAPABILITIES,
            "workspaceHint": opening.workspace,
        });
        let read = self.request("/sessions", &body, (opening, None), end).await?;
        let handshake = self.accepted(read)?;
        match ended.map_or(Ok(()), |ended| check_owner(ended, &handshake.session)) {
            Ok(()) => Ok(handshake),
            Err(why) => Err(self.refused(&why, "start a new session to work for another tenant or user")),
        }
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

    /// Sends a request with the token. If the service rejects a token that a program printed, the program is run again,
    /// and the request is repeated once.
    async fn request(
        &self,
        path: &str,
        body: &Value,
        session: (&SessionOpening, Option<&ServiceSession>),
        end: Instant,
    ) -> Result<ParsedHandshake, HandshakeError> {
        let key = format!("{}-{}", session.0.session_id, uuid::Uuid::new_v4().simple());
        let token = self.token(None).await?;
        let result = self.try_request(path, &headers(&key, token.as_deref()), body, session, end).await;
        if !matches!(result, Err(HandshakeError::Unauthorized(_))) {
            return result;
        }
        let Some(token) = self.replacement(token.as_deref()).await? else { return result };
        self.try_request(path, &headers(&key, Some(&token)), body, session, Instant::now() + TOTAL_TIME).await
    }

    /// Sends a request repeatedly until a complete response arrives, the attempts are used up, or the time limit has
    /// passed.
    async fn try_request(
        &self,
        path: &str,
        headers: &Headers,
        body: &Value,
        (opening, resumed): (&SessionOpening, Option<&ServiceSession>),
        end: Instant,
    ) -> Result<ParsedHandshake, HandshakeError> {
        let mut why = "it takes too long".to_owned();
        for attempt in 1..=ATTEMPTS {
            let left = end.saturating_duration_since(Instant::now()).min(REQUEST_TIME);
            let sent = self.attempt(path, headers, body, (opening, resumed));
            let after = match tokio::time::timeout(left, sent).await {
                Ok(RequestAttempt::Done(read)) => return Ok(read),
                Ok(RequestAttempt::Failed(error)) => return Err(error),
                Ok(RequestAttempt::Retry { why: new, after }) => {
                    why = new;
                    after
                }
                Err(_) => {
                    why = format!("no complete response within {:.0} s", left.as_secs_f64().max(1.0));
                    None
                }
            };
            let delay = DELAYS.delay(attempt, after);
            let left = end.saturating_duration_since(Instant::now());
            if attempt == ATTEMPTS || delay >= left {
                break;
            }
            tokio::time::sleep(delay).await;
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
        let (status, line, after) = (reply.status(), reply.status_line(), reply.retry_after());
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
                let hint = match &self.0.settings.token {
                    Some(SecretReference::Program(command)) => format!(
                        "run `{}` in a terminal to check what it prints; `services.sessions.token_command` in config.toml sets it",
                        command.shell_line()
                    ),
                    _ => "set `services.sessions.token` in config.toml to a valid token".to_owned(),
                };
                RequestAttempt::Failed(HandshakeError::Unauthorized(problem.hint(hint)))
            }
            _ => {
                let why = format!("the service responded with {line}{}", said());
                RequestAttempt::Failed(self.refused(&why, "ask the owner of the session service for access"))
            }
        }
    }

    /// Returns the token, or `None` if the service needs none. `rejected` is a token that the service has rejected.
    async fn token(&self, rejected: Option<&str>) -> Result<Option<String>, HandshakeError> {
        let Some(reference) = &self.0.settings.token else { return Ok(None) };
        let hint = match reference {
            SecretReference::Program(_) => {
                "`services.sessions.token_command` in config.toml names the program that prints the token"
            }
            SecretReference::Variable(_) | SecretReference::Saved(_) => "`services.sessions.token` in config.toml sets the token",
        };
        let read = self.0.secrets.read("sessions", reference, rejected).await;
        read.map(Some).map_err(|why| HandshakeError::Unauthorized(self.problem(&why).hint(hint)))
    }

    /// Returns a new token if a program prints one that differs from the rejected token.
    async fn replacement(&self, rejected: Option<&str>) -> Result<Option<String>, HandshakeError> {
        match &self.0.settings.token {
            Some(SecretReference::Program(_)) => Ok(self.token(rejected).await?.filter(|token| Some(token.as_str()) != rejected)),
            _ => Ok(None),
        }
    }

    async fn send(&self, path: &str, headers: &Headers, body: &Value) -> Result<Reply, String> {
        let server = HttpServer::new(&format!("{}{path}", self.url()), TIMEOUTS).map_err(|error| error.to_string())?;
        server.post_as("application/json", headers, body.to_string().into()).await.map_err(|error| error.to_string())
    }

    /// Notifies the service that a session has ended. Returns how many notifications the service permanently rejected:
    /// 0 or 1. A service that does not know the session counts as notified.
    async fn send_end(&self, row: &OutboxRow) -> Result<u64, SendFailure> {
        let Some((url, path, body)) = cancel_request(&row.body).filter(|(url, ..)| url == self.url()) else { return Ok(0) };
        let unreadable = |error: HandshakeError| SendFailure::new(error.one_line());
        let token = self.token(None).await.map_err(unreadable)?;
        let (mut status, mut line, mut after) = self.post_end(&path, &headers(&row.id, token.as_deref()), &body).await?;
        if status == 401
            && let Some(token) = self.replacement(token.as_deref()).await.map_err(unreadable)?
        {
            (status, line, after) = self.post_end(&path, &headers(&row.id, Some(&token)), &body).await?;
        }
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
    }

    /// Sends the notification that a session has ended. Returns the response status as a number and as text, and the
    /// delay that the service requested.
    async fn post_end(
        &self,
        path: &str,
        headers: &Headers,
        body: &Value,
    ) -> Result<(u16, String, Option<Duration>), SendFailure> {
        let sent = async {
            let reply = self.send(path, headers, body).await.map_err(SendFailure::new)?;
            let response = (reply.status(), reply.status_line(), reply.retry_after());
            let body = reply.into_body(RESPONSE_BYTES).await;
            // Without a complete response, the service may not have stored the end.
            body.map_err(|error| SendFailure::new(error.to_string())).or_else(|failure| match response.0 {
                200..=299 => Err(failure),
                _ => Ok(None),
            })?;
            Ok(response)
        };
        tokio::time::timeout(REQUEST_TIME, sent).await.unwrap_or_else(|_| Err(SendFailure::new("no response in time")))
    }
}

/// Returns the headers of a request. All attempts use the same idempotency key, which ensures that the service
/// registers the session only once.
fn headers(key: &str, token: Option<&str>) -> Headers {
    let mut headers: Headers = vec![("accept".into(), "application/json".to_owned()), ("idempotency-key".into(), key.to_owned())];
    headers.extend(token.map(|token| ("authorization".into(), format!("Bearer {token}"))));
    headers
}

fn client_info() -> Value {
    json!({"name": "aye", "version": env!("CARGO_PKG_VERSION")})
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
