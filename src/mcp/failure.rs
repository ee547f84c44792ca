//! Conversion of failures to the errors used by the ports, which mainly distinguish whether a call may have been run.

use super::Spec;
use super::limits::{MAX_QUOTED_CHARS, MESSAGE_BYTES};
use super::transport::SseTransportError;
use crate::ports::RemoteError;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError, StreamableHttpError};
use std::borrow::Cow;
use std::error::Error;

type HttpError = StreamableHttpError<reqwest::Error>;

/// Shortens a text to at most `bytes` bytes, not counting the ellipsis that is then added at the end.
pub(super) fn truncate(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let end = (0..=bytes).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Converts a server's message to a single line of limited length, for use inside one of aye's own messages.
pub(super) fn one_line(text: &str) -> String {
    let mut words = text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty());
    let mut said = String::new();
    while said.len() < MAX_QUOTED_CHARS
        && let Some(word) = words.next()
    {
        if !said.is_empty() {
            said.push(' ');
        }
        said.push_str(&truncate(word, MAX_QUOTED_CHARS));
    }
    if words.next().is_some() {
        said.push_str(" …");
    }
    said
}

pub(super) fn unreachable(spec: &Spec, why: &str) -> RemoteError {
    RemoteError::Unreachable { message: format!("the server `{}` cannot be reached: {}", spec.name, one_line(why)) }
}

/// Reason why connecting to a server failed.
#[derive(Debug)]
pub(super) enum ConnectFailure {
    NeedsLogin,
    /// The server is not the one that was approved.
    NotApproved(String),
    /// The server may support only the handshake and not discovery.
    OlderProtocol(String),
    /// Retrying would not help.
    Final(String),
    /// Retrying may help.
    Temporary(String),
}

impl ConnectFailure {
    pub(super) fn from_start_error(error: &ClientInitializeError) -> Self {
        if error.is_authorization_required() || chain(error).any(is_sign_in) {
            return Self::NeedsLogin;
        }
        match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::from_start_error(fallback),
            ClientInitializeError::JsonRpcError(error) => {
                Self::Final(format!("the server refused to start a session: {}", error.message))
            }
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. }
                if server_supported.iter().any(|version| version.has_initialize()) =>
            {
                Self::OlderProtocol(format!("the server supports only protocol versions {server_supported:?}"))
            }
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                Self::Final(format!("no common protocol version; the server supports {server_supported:?}"))
            }
            ClientInitializeError::ConnectionClosed(_) => {
                Self::OlderProtocol("the connection closed before the server responded".to_owned())
            }
            ClientInitializeError::TransportError { error, .. } => Self::from_transport_error(error.error.as_ref()),
            // Some older servers respond to unknown requests with an empty result.
            ClientInitializeError::ExpectedInitResult(_) => {
                Self::OlderProtocol("the server sent an unexpected response".to_owned())
            }
            ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ConflictInitResponseId(..)
            | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
                Self::Final("the server sent an unexpected response".to_owned())
            }
            error => Self::Temporary(error.to_string()),
        }
    }

    pub(super) fn with_suffix(self, words: &str) -> Self {
        match self {
            Self::NeedsLogin => Self::NeedsLogin,
            Self::NotApproved(reason) => Self::NotApproved(reason),
            Self::OlderProtocol(reason) => Self::OlderProtocol(reason + words),
            Self::Final(reason) => Self::Final(reason + words),
            Self::Temporary(reason) => Self::Temporary(reason + words),
        }
    }

    pub(super) fn from_listing_error(error: &ServiceError) -> Self {
        match error {
            ServiceError::TransportSend(error) if chain(error).any(is_sign_in) => Self::NeedsLogin,
            ServiceError::TransportSend(error) => Self::from_transport_error(error.error.as_ref()),
            ServiceError::McpError(error) => Self::Final(format!("the server refused to list its tools: {}", error.message)),
            ServiceError::TransportClosed => {
                Self::Temporary("the connection closed before the server listed its tools".to_owned())
            }
            ServiceError::UnexpectedResponse => Self::Final("the server's tool list is invalid".to_owned()),
            error => Self::Temporary(error.to_string()),
        }
    }

    fn from_transport_error(error: &(dyn Error + 'static)) -> Self {
        match error.downcast_ref::<HttpError>() {
            Some(HttpError::Client(error)) => Self::Temporary(root(error).to_string()),
            Some(HttpError::HttpStatus(status)) => Self::Temporary(format!("HTTP {}", status.status)),
            Some(HttpError::UnexpectedServerResponse(text)) => Self::Final(text.to_string()),
            Some(error) => Self::Final(error.to_string()),
            None => Self::Temporary(root(error).to_string()),
        }
    }
}

/// Creates the error for a failed request that was sent at least in part.
pub(super) fn request_error(spec: &Spec, error: &ServiceError) -> RemoteError {
    let unknown = |why: &str| RemoteError::OutcomeUnknown {
        message: format!("it is unknown whether the call ran: the server `{}` {}", spec.name, one_line(why)),
    };
    match error {
        ServiceError::McpError(error) => RemoteError::Refused {
            message: format!("the server `{}` returned an error: {} ({})", spec.name, one_line(&error.message), error.code.0),
        },
        ServiceError::TransportClosed => unknown("closed the connection"),
        ServiceError::UnexpectedResponse => {
            RemoteError::Refused { message: format!("the server `{}` sent an invalid response", spec.name) }
        }
        ServiceError::TransportSend(error) if chain(error).any(is_sign_in) => {
            RemoteError::NeedsLogin { server: spec.name.clone() }
        }
        ServiceError::TransportSend(error) => match error.error.downcast_ref::<HttpError>() {
            Some(HttpError::Client(error)) if error.is_connect() => unreachable(spec, &root(error).to_string()),
            Some(HttpError::ResponseBodyTooLarge { max_size }) => RemoteError::TooLarge { limit: *max_size as u64 },
            Some(HttpError::SessionExpired | HttpError::ReinitializationFailed(_)) => {
                unreachable(spec, "the session expired, and the server does not start a new one")
            }
            Some(HttpError::HttpStatus(status)) if matches!(status.status, 429 | 503) => {
                RemoteError::Busy { message: format!("the server `{}` is busy: HTTP {}", spec.name, status.status) }
            }
            Some(HttpError::UnexpectedServerResponse(text)) => {
                RemoteError::Refused { message: format!("the server `{}` returned an error: {}", spec.name, one_line(text)) }
            }
            Some(error) => unknown(&format!("dropped the connection: {}", root(error))),
            None => match error.error.downcast_ref::<SseTransportError>() {
                Some(SseTransportError::Request(error)) if error.is_connect() => unreachable(spec, &root(error).to_string()),
                Some(SseTransportError::Status(status)) => {
                    RemoteError::Refused { message: format!("the server `{}` returned an error: HTTP {status}", spec.name) }
                }
                _ => unknown(&format!("closed the connection: {}", root(error.error.as_ref()))),
            },
        },
        error => unknown(&error.to_string()),
    }
}

pub(super) fn too_large_error() -> RemoteError {
    RemoteError::TooLarge { limit: MESSAGE_BYTES as u64 }
}

fn is_sign_in(error: &(dyn Error + 'static)) -> bool {
    error.is::<AuthRequiredError>()
        || error.is::<InsufficientScopeError>()
        || matches!(error.downcast_ref(), Some(SseTransportError::NeedsLogin))
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn root<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}
