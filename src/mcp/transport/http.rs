//! Streamable HTTP, with authenticated requests, size-limited responses, and redirects only within the same origin.

use super::prune;
use crate::mcp::limits::{MESSAGE_BYTES, MESSAGE_DEPTH};
use crate::mcp::{AuthRefusal, Header, Spec, Tokens};
use crate::sys::http::same_origin_client;
use futures_util::StreamExt;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, ExponentialBackoff};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Maximum number of times to send a request with different tokens.
const SIGNINGS: usize = 3;
/// Maximum number of times to resume a broken stream, unless the server specifies a delay.
const RESUMPTIONS: usize = 5;

type HttpError = StreamableHttpError<reqwest::Error>;

#[derive(Clone)]
pub(in crate::mcp) struct Http {
    client: reqwest::Client,
    spec: Arc<Spec>,
    tokens: Option<Arc<dyn Tokens>>,
    /// Status of the request that was rejected most recently.
    refused_with: Arc<AtomicU16>,
}

impl Http {
    pub(in crate::mcp) fn new(url: &str, spec: Arc<Spec>, tokens: Option<Arc<dyn Tokens>>) -> Result<Self, String> {
        let client = same_origin_client(url).map_err(|error| error.to_string())?;
        Ok(Self { client, spec, tokens, refused_with: Arc::default() })
    }

    pub(in crate::mcp) fn configuration(url: &str, headers: &[Header]) -> Result<StreamableHttpClientTransportConfig, String> {
        let mut configuration = StreamableHttpClientTransportConfig::with_uri(url)
            .custom_headers(header_map(headers)?)
            .max_sse_event_size(MESSAGE_BYTES);
        let mut again = ExponentialBackoff::default();
        again.max_times = Some(RESUMPTIONS);
        again.base_duration = Duration::from_millis(500);
        again.max_delay = Some(Duration::from_secs(10));
        configuration.retry_config = Arc::new(again);
        Ok(configuration)
    }

    pub(in crate::mcp) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Returns the status of the request that was rejected most recently, by which an older server can be recognized.
    pub(in crate::mcp) fn last_rejection(&self) -> u16 {
        self.refused_with.load(Ordering::Relaxed)
    }

    pub(in crate::mcp) async fn token(&self) -> Result<Option<String>, String> {
        match &self.tokens {
            Some(tokens) => tokens.token(&self.spec).await,
            None => Ok(None),
        }
    }

    /// Returns a new token, or `None` if there is none.
    pub(in crate::mcp) async fn renew_token(&self, refusal: AuthRefusal) -> Result<Option<String>, String> {
        match &self.tokens {
            Some(tokens) => tokens.on_rejected(&self.spec, refusal).await,
            None => Ok(None),
        }
    }

    async fn send_authorized<T, F: Future<Output = Result<T, HttpError>>>(
        &self,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, HttpError> {
        let mut token = self.token().await.map_err(no_token)?;
        for _ in 0..SIGNINGS {
            let error = match send(token.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => self.record_rejection(error),
            };
            let refusal = match &error {
                HttpError::AuthRequired(required) => AuthRefusal::Unauthorized {
                    challenge: Some(required.www_authenticate_header.clone()).filter(|challenge| !challenge.is_empty()),
                    used: token.clone(),
                },
                HttpError::InsufficientScope(insufficient) => AuthRefusal::InsufficientScope {
                    challenge: insufficient.www_authenticate_header.clone(),
                    scope: insufficient.required_scope.clone(),
                    used: token.clone(),
                },
                _ => return Err(error),
            };
            match self.renew_token(refusal).await.map_err(no_token)? {
                Some(another) => token = Some(another),
                None => return Err(error),
            }
        }
        send(token).await.map_err(|error| self.record_rejection(error))
    }

    /// Records the status of a rejected request, even if the response contains no challenge.
    fn record_rejection(&self, error: HttpError) -> HttpError {
        let status = error_status(&error);
        self.refused_with.store(status.unwrap_or(0), Ordering::Relaxed);
        match (status, &error) {
            (Some(401), HttpError::UnexpectedServerResponse(_)) => HttpError::AuthRequired(AuthRequiredError::new(String::new())),
            _ => error,
        }
    }
}

fn no_token(reason: String) -> HttpError {
    HttpError::UnexpectedServerResponse(format!("no access token for the request: {reason}").into())
}

fn error_status(error: &HttpError) -> Option<u16> {
    match error {
        HttpError::AuthRequired(_) => Some(401),
        HttpError::InsufficientScope(_) => Some(403),
        HttpError::HttpStatus(status) => Some(status.status),
        HttpError::Client(error) => error.status().map(|status| status.as_u16()),
        HttpError::UnexpectedServerResponse(text) => text.strip_prefix("HTTP ")?.get(..3)?.parse().ok(),
        _ => None,
    }
}

pub(super) fn header_map(headers: &[Header]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let one = |header: &Header| {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|_| format!("`{}` is not a valid header name", header.name))?;
        let mut value = HeaderValue::from_str(&header.value)
            .map_err(|_| format!("the value of `{}` is not a valid header value", header.name))?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    headers.iter().map(one).collect()
}

fn shallow(stream: BoxedSseResponse) -> BoxedSseResponse {
    stream
        .map(|event| {
            event.map(|mut event| {
                event.data = event.data.map(|data| match prune(data.as_bytes(), MESSAGE_DEPTH) {
                    std::borrow::Cow::Borrowed(_) => data,
                    std::borrow::Cow::Owned(kept) => String::from_utf8(kept).unwrap_or_default(),
                });
                event
            })
        })
        .boxed()
}

impl StreamableHttpClient for Http {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.post_message_with_max_sse_event_size(uri, message, session_id, auth_header, custom_headers, MESSAGE_BYTES).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let answer = self
            .send_authorized(|token| {
                self.client.post_message_with_max_sse_event_size(
                    Arc::clone(&uri),
                    message.clone(),
                    session_id.clone(),
                    token,
                    custom_headers.clone(),
                    max_sse_event_size,
                )
            })
            .await?;
        Ok(match answer {
            StreamableHttpPostResponse::Sse(stream, session) => StreamableHttpPostResponse::Sse(shallow(stream), session),
            answer => answer,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let token = self.token().await.map_err(no_token)?;
        self.client.delete_session(uri, session_id, token, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, HttpError> {
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, MESSAGE_BYTES).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxedSseResponse, HttpError> {
        let stream = self
            .send_authorized(|token| {
                self.client.get_stream_with_max_sse_event_size(
                    Arc::clone(&uri),
                    session_id.clone(),
                    last_event_id.clone(),
                    token,
                    custom_headers.clone(),
                    max_sse_event_size,
                )
            })
            .await?;
        Ok(shallow(stream))
    }
}
