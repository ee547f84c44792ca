//! A search service at a configured address. Each search is a single request, which follows no redirects and is limited
//! in time and size.

use super::service::ServiceKind;
use super::service_request::ServiceRequest;
use crate::ports::{BoxFuture, SearchAnswer, SearchEngine, SearchRequest};
use crate::protocol::{ErrorCode, ToolError};
use crate::sys::http::{HttpError, HttpServer, Reply, Timeouts};
use crate::text::clean;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for a search, from connecting to receiving the last byte.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size in bytes of a response that contains results.
const RESPONSE_BYTES: usize = 2 << 20;
/// Maximum number of bytes to read from an error response.
const ERROR_BYTES: usize = 4 << 10;
/// Maximum number of characters of an error response to show.
const SHOWN_CHARS: usize = 200;
/// Minimum length in bytes of a key for it to be redacted in errors. A shorter key could match other text by chance.
const KEY_BYTES: usize = 8;

/// The API key for a service.
pub(crate) trait SearchKey: Send + Sync {
    /// Returns a hint on how to add a key if it is certain that there is none. Does not wait for the keyring.
    fn missing_hint(&self) -> Option<String>;
    /// Returns the key, or `None` if there is none. May wait for the keyring.
    fn reveal(&self) -> Result<Option<String>, String>;
}

/// A search service at a specific address.
#[derive(Clone)]
pub(crate) struct Endpoint {
    kind: ServiceKind,
    server: Arc<HttpServer>,
    host: String,
    key: Arc<dyn SearchKey>,
}

impl Endpoint {
    /// Creates the client without sending a request.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is invalid.
    pub(crate) fn new(kind: ServiceKind, base_url: &str, key: Arc<dyn SearchKey>) -> Result<Self, String> {
        let timeouts = Timeouts { idle: TIMEOUT, ..Timeouts::default() };
        let server = HttpServer::new(base_url, timeouts).map_err(|error| error.to_string())?;
        let host = server.host().to_owned();
        Ok(Self { kind, server: Arc::new(server), host, key })
    }

    async fn send(&self, request: &SearchRequest) -> Result<SearchAnswer, ToolError> {
        let key = if self.kind.needs_key() { Some(self.key().await?) } else { None };
        let ServiceRequest { path, headers, body } = self.kind.request(request, key.as_deref());
        let sent = match body {
            Some(body) => self.server.post(&path, &headers, body.into()).await,
            None => self.server.get(&path, &headers).await,
        };
        let reply = sent.map_err(|error| self.unreachable(&error))?;
        let status = reply.status();
        if !(200..300).contains(&status) {
            return Err(self.response_error(reply, key.as_deref()).await);
        }
        let kind = reply.header("content-type").unwrap_or("unknown type").to_owned();
        let body = self.body(reply).await?;
        let pages = self.kind.pages(&body).map_err(|error| self.unreadable(&kind, &error))?;
        Ok(SearchAnswer { pages, ..SearchAnswer::default() })
    }

    /// Returns the key, which may have to be read from the keyring.
    async fn key(&self) -> Result<String, ToolError> {
        let key = Arc::clone(&self.key);
        let revealed = tokio::task::spawn_blocking(move || key.reveal()).await;
        let revealed = revealed.unwrap_or_else(|_| Err("the API key cannot be looked up".to_owned()));
        let key = revealed.map_err(|why| search_error(format!("cannot read the API key for {}: {why}", self.name())))?;
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        key.ok_or_else(|| self.without_key(&self.key.missing_hint().unwrap_or_default()))
    }

    fn without_key(&self, hint: &str) -> ToolError {
        search_error(format!("no API key for {}; ask the user to add one: {hint}", self.name()))
    }

    async fn body(&self, reply: Reply) -> Result<Vec<u8>, ToolError> {
        let body = reply.into_body(RESPONSE_BYTES).await.map_err(|error| self.unreachable(&error))?;
        let limit = RESPONSE_BYTES >> 20;
        body.ok_or_else(|| search_error(format!("the response from {} is larger than {limit} MB; it was discarded", self.name())))
    }

    fn unreachable(&self, error: &HttpError) -> ToolError {
        let host = &self.host;
        search_error(format!(
            "{} did not respond: {error}; ask the user to check that the search service at {host} is running",
            self.name()
        ))
    }

    fn unreadable(&self, content_type: &str, error: &serde_json::Error) -> ToolError {
        let essence = clean(content_type.split(';').next().unwrap_or_default().trim());
        let found = match &*essence {
            "application/json" => format!("JSON in another format ({error})"),
            _ => format!("no JSON ({essence})"),
        };
        let (name, host) = (self.name(), &self.host);
        let hint = match self.kind {
            ServiceKind::Searxng => "; `json` must be in `search.formats` of the SearXNG settings",
            ServiceKind::Brave | ServiceKind::Tavily => "",
        };
        search_error(format!("{name} at {host} returned {found}; ask the user to check `search.base_url`{hint}"))
    }

    /// Builds the error for a response that contains no results.
    async fn response_error(&self, reply: Reply, key: Option<&str>) -> ToolError {
        let (name, status, line) = (self.name(), reply.status(), reply.status_line());
        if (300..400).contains(&status) {
            let place = clean(reply.header("location").unwrap_or("another address")).into_owned();
            return search_error(format!(
                "{name} redirected the search to {place} ({line}), which is not followed; ask the user to check `search.base_url`"
            ));
        }
        let hint = match status {
            401 | 403 if self.kind.needs_key() => {
                let other = self.key.missing_hint().unwrap_or_default();
                let other = if other.is_empty() { "replace the API key".to_owned() } else { other };
                format!("the API key was rejected; ask the user to {other}")
            }
            429 => match reply.header("retry-after") {
                Some(delay) => format!("too many searches; retry after {} s", clean(delay)),
                None => "too many searches; retry later, or continue without".to_owned(),
            },
            402 | 432 | 433 => "the account's quota is used up; continue without searching".to_owned(),
            status => self.kind.cause(status).map_or_else(
                || "ask the user to check the search service".to_owned(),
                |cause| format!("ask the user to {cause}"),
            ),
        };
        let said = excerpt(&reply.into_head(ERROR_BYTES).await, key);
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        search_error(format!("{name} refused the search ({line}{said}); {hint}"))
    }
}

impl SearchEngine for Endpoint {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn host(&self) -> &str {
        &self.host
    }

    fn is_certain(&self) -> bool {
        true
    }

    fn rewrites_query(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), ToolError> {
        let missing = if self.kind.needs_key() { self.key.missing_hint() } else { None };
        missing.map_or(Ok(()), |hint| Err(self.without_key(&hint)))
    }

    fn search(&self, request: SearchRequest) -> BoxFuture<'static, Result<SearchAnswer, ToolError>> {
        let endpoint = self.clone();
        Box::pin(async move {
            let late = || {
                let message =
                    format!("{} sent no complete response within {} s; retry later", endpoint.name(), TIMEOUT.as_secs());
                ToolError::new(ErrorCode::ToolExecutionTimeout, message)
            };
            tokio::time::timeout(TIMEOUT, endpoint.send(&request)).await.unwrap_or_else(|_| Err(late()))
        })
    }
}

fn search_error(message: String) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionFailed, message)
}

/// Returns the start of an error response on a single line. The key, which the service may have repeated, is removed.
fn excerpt(body: &[u8], key: Option<&str>) -> String {
    let text = String::from_utf8_lossy(body);
    if text.trim_start().starts_with('<') {
        return String::new();
    }
    let text = match key.filter(|key| key.len() >= KEY_BYTES) {
        Some(key) => text.replace(key, "[key]"),
        None => text.into_owned(),
    };
    let line = clean(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(SHOWN_CHARS).collect()
}
