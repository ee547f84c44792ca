//! User-facing provider errors, which consist of the kind of failure, the provider's message, and advice.

mod body;
mod classify;
mod retry_after;

use body::{ErrorFields, is_error_body, read_body};
use classify::classify;
pub(super) use retry_after::{RetryHints, parse_headers};

use super::sse::SseError;
use crate::ports::ModelError;
use crate::protocol::{Failure, FailureKind};
use crate::sys::http::HttpError;

const SHOWN_CHARS: usize = 160;

/// Details about the provider that sent a response, for use in messages and hints.
#[derive(Debug, Clone)]
pub(super) struct ErrorContext {
    pub provider: String,
    pub model: String,
    pub key_variable: String,
    pub base_url: String,
    /// Advice on renewing the credentials. Set if they are not an API key.
    pub remedy: Option<String>,
}

impl ErrorContext {
    /// Returns the origin recorded for opaque parts, which consists of provider and address. An encrypted part can be
    /// decrypted only there, by the account for which it was encrypted.
    pub(crate) fn origin(&self) -> String {
        format!("{} {}", self.provider, self.base_url)
    }

    /// Creates the error for a response whose status or body reports an error.
    pub(crate) fn status_error(&self, status: u16, status_line: &str, body: &[u8], hints: RetryHints) -> ModelError {
        let words = read_body(status_line, body);
        let status = if status < 300 { words.status.unwrap_or(0) } else { status };
        let wait = hints.wait.or(words.wait);
        let mut failure = self.judge(status, words);
        // Errors that a retry cannot fix are not retried, even if a header suggests it.
        let hopeless = matches!(
            failure.kind,
            FailureKind::Authentication | FailureKind::Billing | FailureKind::ContextTooLong | FailureKind::GuardrailBlocked
        );
        failure.retryable = hints.again.unwrap_or(failure.retryable) && !hopeless;
        let limits = hints.limits.filter(|_| failure.kind == FailureKind::RateLimited);
        let retry_after = wait.or(limits).filter(|_| failure.retryable);
        failure.request_id = hints.request_id.or(failure.request_id);
        ModelError { failure, retry_after, usage: None }
    }

    /// Returns an error's message followed by the names of the fields to which it refers.
    pub(crate) fn error_details(body: &[u8]) -> String {
        let words = read_body("", body);
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) else { return words.message };
        let param = ["/error/param", "/param"].iter().find_map(|path| value.pointer(path)?.as_str()).unwrap_or_default();
        let place = ["/detail/0/loc", "/message/detail/0/loc"].iter().find_map(|path| value.pointer(path));
        format!("{} {} {param} {}", words.message, words.behind, place.map(|place| place.to_string()).unwrap_or_default())
    }

    /// Creates the error for an error object received in the stream.
    pub(crate) fn error_event(&self, error: &str) -> ModelError {
        let words = read_body("the provider reported an error without a message", error.as_bytes());
        let retry_after = words.wait;
        let failure = self.judge(words.status.unwrap_or(0), words);
        ModelError { retry_after: retry_after.filter(|_| failure.retryable), ..failure.into() }
    }

    /// Creates the error for a stream that was interrupted.
    pub(crate) fn interrupted_stream(&self, error: SseError) -> ModelError {
        match error {
            SseError::Http(error) => self.transport(&error),
            SseError::NotEvents(body) if is_refusal(&body) => self.status_error(200, "200 OK", &body, RetryHints::default()),
            SseError::NotEvents(body) => {
                let text = if body.is_empty() { "nothing".to_owned() } else { format!("`{}`", body_excerpt(&body)) };
                self.unexpected_body(&format!("expected an event stream from `{}`, got {text}", self.base_url))
            }
            SseError::Damaged => Failure::new(FailureKind::CutStream, error.to_string(), "try again").into(),
            SseError::TooLarge | SseError::NotText => self.unexpected_body(&error.to_string()),
        }
    }

    pub(crate) fn transport(&self, error: &HttpError) -> ModelError {
        let message = error.to_string();
        let failure = match error {
            HttpError::Address { .. } => {
                Failure::new(FailureKind::InvalidRequest, message, format!("correct the address of provider `{}`", self.provider))
            }
            HttpError::Setup(_) => {
                let hint = "check that the system's certificates are installed (`ca-certificates`) and that the proxy variables are correct";
                Failure::new(FailureKind::InvalidRequest, message, hint)
            }
            HttpError::Bundle { .. } => Failure::new(
                FailureKind::InvalidRequest,
                message,
                "set `http.ca_bundle` in config.toml to a PEM file with certificates",
            ),
            HttpError::Header(_) => Failure::new(
                FailureKind::Authentication,
                message,
                format!("check `{}`: an API key is one line of letters and digits", self.key_variable),
            ),
            HttpError::Unreachable { reason, .. } => Failure::new(FailureKind::Network, message, self.unreachable(reason)),
            HttpError::ConnectTimeout { .. } => {
                Failure::new(FailureKind::Timeout, message, "check the network and the proxy variables")
            }
            HttpError::Silent { .. } => {
                Failure::new(FailureKind::Timeout, message, "try again, or raise `llm.idle_timeout_seconds` for a slow server")
            }
            HttpError::Cut { .. } => Failure::new(FailureKind::CutStream, message, "try again"),
            HttpError::Packed { .. } => Failure::new(
                FailureKind::Protocol,
                message,
                format!("configure the server or proxy at `{}` to send uncompressed responses", self.base_url),
            ),
        };
        failure.into()
    }

    /// Returns advice for a server that could not be reached.
    fn unreachable(&self, reason: &str) -> String {
        if reason.starts_with("TLS: invalid peer certificate") {
            return "if your network uses its own certificate authority, set `http.ca_bundle` in config.toml to its PEM file"
                .to_owned();
        }
        if reason.contains("proxy") || reason.contains("tunnel") {
            return "check HTTPS_PROXY and NO_PROXY, with the user and password of the proxy".to_owned();
        }
        format!("check the network and the address `{}`", self.base_url)
    }

    /// Creates the error for a response that ended without an end marker.
    pub(crate) fn missing_end(&self) -> ModelError {
        let message = format!("the response from `{}` ended early", self.provider);
        Failure::new(FailureKind::CutStream, message, "try again").into()
    }

    /// Creates the error for an empty response body.
    pub(crate) fn empty_body(&self) -> ModelError {
        let message = format!("`{}` sent an empty response", self.provider);
        Failure::new(FailureKind::CutStream, message, "try again").into()
    }

    /// Creates the error for a stream that has contained only keep-alive events for this number of seconds.
    pub(crate) fn no_content(&self, seconds: u64) -> ModelError {
        let message = format!("`{}` kept the connection open for {seconds} s without a response", self.provider);
        let hint = "try again, or raise `llm.idle_timeout_seconds` for a slow server";
        Failure::new(FailureKind::Timeout, message, hint).into()
    }

    /// Creates the error for a response that exceeds a limit. It is not retryable, because the next response would be
    /// just as long, and both would be billed.
    pub(crate) fn over_limit(&self, over: &str) -> ModelError {
        let message = format!("the response from `{}` was too long and was cut off: {over}", self.provider);
        let mut failure = Failure::new(FailureKind::Protocol, message, "rephrase the prompt, or choose another model with -m");
        failure.retryable = false;
        failure.into()
    }

    /// Creates the error for a body that is not a response of the expected API.
    pub(crate) fn unexpected_body(&self, what: &str) -> ModelError {
        let hint = format!("check that `{}` is the address of a `{}` API", self.base_url, self.provider);
        Failure::new(FailureKind::Protocol, what, hint).into()
    }

    fn judge(&self, status: u16, words: ErrorFields) -> Failure {
        let kind = classify(status, &words);
        let mut hint = self.hint(kind);
        if !words.behind.is_empty() {
            hint = format!("{hint}; upstream error: {}", words.behind);
        }
        let mut failure = Failure::new(kind, words.message, hint);
        failure.request_id = words.request_id;
        failure.status = (status > 0).then_some(status);
        // The server rejected a call that the model wrote; another attempt may produce a valid one.
        failure.retryable |= words.codes.contains("tool_use_failed");
        failure
    }

    fn hint(&self, kind: FailureKind) -> String {
        match kind {
            FailureKind::Authentication if self.remedy.is_some() => self.remedy.clone().unwrap_or_default(),
            FailureKind::Authentication => format!("check `{}`", self.key_variable),
            FailureKind::Billing => format!("check the balance of your account at `{}`", self.provider),
            FailureKind::Permission => format!("check the permissions of the key in `{}`", self.key_variable),
            FailureKind::NotFound if self.model.is_empty() => format!("check the address `{}`", self.base_url),
            FailureKind::NotFound => format!("check the model name `{}` and the address `{}`", self.model, self.base_url),
            FailureKind::ContextTooLong => "compact the conversation or start a new session".to_owned(),
            FailureKind::GuardrailBlocked => "rephrase the prompt".to_owned(),
            FailureKind::RateLimited => "wait a moment and try again".to_owned(),
            FailureKind::Overloaded => "the provider has problems; try again later".to_owned(),
            FailureKind::Timeout | FailureKind::Network | FailureKind::CutStream | FailureKind::Protocol => {
                "try again".to_owned()
            }
            FailureKind::InvalidRequest => {
                format!("the provider rejected this request; try a model other than `{}`", self.model)
            }
            FailureKind::BudgetExceeded
            | FailureKind::MaxStepsExceeded
            | FailureKind::PolicyExpired
            | FailureKind::NotSaved
            | FailureKind::NotHeld
            | FailureKind::Internal => String::new(),
        }
    }
}

/// Returns whether the body of a response without events reports an error.
pub(super) fn is_refusal(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) && is_error_body(body)
}

/// Returns the beginning of an unexpected body, formatted as a single line.
pub(super) fn body_excerpt(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes)
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN_CHARS + 1)
        .collect();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
