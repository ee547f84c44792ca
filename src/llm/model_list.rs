//! Model lists of servers.

mod entry;

pub(crate) use entry::ModelEntry;

use super::connection::ProviderConnection;
use super::error::{self, ErrorContext};
use super::{Api, ProviderSpec, gemini};
use crate::protocol::{Failure, FailureKind};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Maximum size of a page in bytes.
const BODY_BYTES: usize = 8 << 20;
const ERROR_BYTES: usize = 64 << 10;
/// Maximum number of pages to fetch, in case a list never ends.
const PAGES: usize = 20;
const MODELS: usize = 10_000;
/// Timeout for fetching the whole list.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How to request a model list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Anthropic,
    OpenAi,
    Gemini,
}

impl Form {
    fn for_api(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic,
            Api::OpenAiChat | Api::OpenAiResponses => Self::OpenAi,
            Api::Gemini => Self::Gemini,
        }
    }

    fn path(self, base: &str, page: Option<&str>) -> String {
        match (self, page) {
            (Self::Gemini, None) => format!("{}/models?pageSize=1000", gemini::version_below(base)),
            (Self::Gemini, Some(page)) => {
                format!("{}/models?pageSize=1000&pageToken={}", gemini::version_below(base), escaped(page))
            }
            (Self::Anthropic, None) => "/v1/models?limit=1000".to_owned(),
            (Self::Anthropic, Some(page)) => format!("/v1/models?limit=1000&after_id={}", escaped(page)),
            (Self::OpenAi, _) => "/models".to_owned(),
        }
    }

    /// Returns the query that requests the next page, or `None` if this is the last page.
    fn next(self, body: &Value) -> Option<String> {
        let text = |field: &str| body.get(field)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        match self {
            Self::Anthropic if body.get("has_more").and_then(Value::as_bool) == Some(true) => text("last_id"),
            Self::Gemini => text("nextPageToken"),
            Self::Anthropic | Self::OpenAi => None,
        }
    }
}

/// Fetches the list of models from a provider's server.
pub(crate) async fn models(spec: ProviderSpec) -> Result<Vec<ModelEntry>, Failure> {
    let connection = ProviderConnection::new(&spec, "")?;
    let list = ModelPages::new(spec.api, &connection);
    list.fetch_all().await
}

/// Checks whether a provider accepts the key or account, using a request that costs nothing.
pub(crate) async fn check(spec: ProviderSpec) -> Result<(), Failure> {
    let connection = ProviderConnection::new(&spec, "")?;
    if spec.account.is_some() {
        return connection.check_account().await;
    }
    let path = spec.service.list_path(connection.address());
    let list = ModelPages { path, ..ModelPages::new(spec.api, &connection) };
    list.fetch_all().await.map(drop)
}

/// Fetches a model list page by page.
pub(super) struct ModelPages<'a> {
    connection: &'a ProviderConnection,
    /// Path of the list, if it differs from the default.
    path: Option<String>,
    form: Form,
}

impl<'a> ModelPages<'a> {
    pub(crate) fn new(api: Api, connection: &'a ProviderConnection) -> Self {
        Self { connection, path: None, form: Form::for_api(api) }
    }

    fn speaker(&self) -> &ErrorContext {
        self.connection.speaker()
    }

    pub(crate) async fn fetch_all(&self) -> Result<Vec<ModelEntry>, Failure> {
        let silent = || {
            let message = format!("`{}` did not list its models within {} s", self.speaker().base_url, TIMEOUT.as_secs());
            Failure::new(FailureKind::Timeout, message, "try again")
        };
        tokio::time::timeout(TIMEOUT, self.pages()).await.unwrap_or_else(|_| Err(silent()))
    }

    async fn pages(&self) -> Result<Vec<ModelEntry>, Failure> {
        let (mut models, mut page): (Vec<ModelEntry>, Option<String>) = (Vec::new(), None);
        for _ in 0..PAGES {
            let body = self.page(page.as_deref()).await?;
            let found = entry::read(&body).ok_or_else(|| self.garbage())?;
            let before = models.len();
            for told in found {
                if models.len() < MODELS && !models.iter().rev().take(1000).any(|model| model.id == told.id) {
                    models.push(told);
                }
            }
            page = self.form.next(&body).filter(|next| Some(next) != page.as_ref());
            if page.is_none() || models.len() == before {
                break;
            }
        }
        Ok(models)
    }

    async fn page(&self, page: Option<&str>) -> Result<Value, Failure> {
        let usual = || self.form.path(self.connection.address(), page);
        let path = self.path.clone().unwrap_or_else(usual);
        let reply = self.connection.get(&path).await.map_err(|error| error.failure)?;
        let status = reply.status();
        if !(200..300).contains(&status) {
            let (line, asked) = (reply.status_line(), error::parse_headers(|name| reply.header(name), SystemTime::now()));
            let body = if (300..400).contains(&status) { Vec::new() } else { reply.into_head(ERROR_BYTES).await };
            return Err(self.connection.redact(self.speaker().status_error(status, &line, &body, asked)).failure);
        }
        let body = reply.into_head(BODY_BYTES + 1).await;
        if body.len() > BODY_BYTES {
            return Err(self
                .speaker()
                .unexpected_body(&format!("the model list is larger than {} MB", BODY_BYTES >> 20))
                .failure);
        }
        serde_json::from_slice(&body).map_err(|_| self.garbage())
    }

    fn garbage(&self) -> Failure {
        self.speaker().unexpected_body(&format!("expected a model list from `{}`", self.speaker().base_url)).failure
    }
}

/// Escapes text for use in the query of a URL.
fn escaped(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests;
