//! Model providers and their APIs.

mod anthropic;
mod arguments;
mod auth;
mod catalogue;
mod chat;
mod connection;
mod deltas;
pub(crate) mod demo;
mod error;
mod event_stream;
mod gemini;
mod ids;
mod images;
mod json;
mod limits;
mod local;
pub(crate) mod local_discovery;
mod model_list;
mod no_model;
mod opaque_parts;
mod provider_answer;
mod quirks;
mod remote;
mod responses;
mod service;
mod sse;
mod stream_reader;
mod thread;
mod thread_repair;
mod web_search;

pub(crate) use catalogue::{Catalogue, CatalogueUpdate, UpdateError, is_same_model, newest_of_family, similar_name};
pub(crate) use local::list_servers as reported_servers;
pub(crate) use model_list::{ModelEntry, check as check_access, models as list_models};
pub(crate) use no_model::MissingModel;
pub(crate) use service::Service;

use crate::cloud::{aws, google};
use crate::ports::Model;
use crate::protocol::Failure;
use crate::sys::http::Timeouts;
use std::fmt;
use std::sync::Arc;

/// Decodes a body that arrives in these chunks, and returns the data or error of each event. Used by `fuzz/`.
#[cfg(feature = "fuzzing")]
pub fn decode_events(pieces: Vec<Vec<u8>>) -> Vec<Result<String, String>> {
    use futures_util::{FutureExt, StreamExt, stream};
    let events = sse::events(stream::iter(pieces.into_iter().map(|piece| Ok(piece.into()))));
    let told = events.map(|event| event.map(|event| event.data).map_err(|error| error.to_string()));
    // None of these futures is ever pending.
    told.collect().now_or_never().unwrap_or_default()
}

/// Returns the number of bytes of text, reasoning and arguments in a response body that arrives in these chunks. Used
/// by `benches/`, which thereby measures everything except the connection.
#[cfg(feature = "fuzzing")]
pub async fn response_bytes(api: Api, pieces: Vec<bytes::Bytes>) -> Result<usize, String> {
    use crate::ports::Delta;
    use futures_util::stream;
    let [provider, model, key_variable, base_url] = ["p", "m", "KEY", "http://p"].map(str::to_owned);
    let speaker = error::ErrorContext { provider, model, key_variable, base_url, remedy: None };
    let events = sse::events(stream::iter(pieces.into_iter().map(Ok)));
    let answer = remote::answer(api, speaker.clone());
    let mut listener = stream_reader::Listener::new(speaker, events, answer, std::time::Duration::from_secs(60));
    let mut bytes = 0;
    while !listener.at_end() {
        let outcome = listener.listen().await;
        for delta in listener.take() {
            bytes += match delta {
                Delta::Text(text) | Delta::Reasoning(text) => text.len(),
                Delta::ToolCallProgress { .. } | Delta::Completed(_) => 0,
            };
        }
        outcome.map_err(|error| error.to_string())?;
    }
    let completion = listener.finish().map_err(|error| error.to_string())?;
    Ok(bytes + completion.content.len())
}

/// API that a server implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, including compatible servers.
    OpenAiChat,
    /// Google's Gemini API.
    Gemini,
    /// OpenAI Responses, used without storing responses on the server.
    OpenAiResponses,
}

impl Api {
    /// Returns the URL of the API's own provider, which requires a key.
    pub fn home(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }
}

/// Function that looks up a key. It is passed the key that the provider rejected, if any.
type RenewKey = Arc<dyn Fn(Option<&str>) -> Result<String, Failure> + Send + Sync>;

/// API key, which is never displayed.
#[derive(Clone)]
pub(crate) struct Secret(SecretValue);

#[derive(Clone)]
enum SecretValue {
    Text(String),
    Later(Arc<dyn Fn() -> Result<String, String> + Send + Sync>),
    Renewable(RenewKey),
}

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(SecretValue::Text(text.into()))
    }

    /// Creates a key that is looked up when the first request is made, on a thread that may block.
    pub(crate) fn later(ask: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(SecretValue::Later(Arc::new(ask)))
    }

    /// Creates a key that is looked up for each request, on a thread that may block. `ask` is passed the key that the
    /// provider rejected, if any.
    pub(crate) fn renewable(ask: impl Fn(Option<&str>) -> Result<String, Failure> + Send + Sync + 'static) -> Self {
        Self(SecretValue::Renewable(Arc::new(ask)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Additional headers for every request. Their values may be secrets and are never displayed.
#[derive(Clone, Default)]
pub(crate) struct ExtraHeaders(pub Vec<(String, String)>);

impl fmt::Debug for ExtraHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// How to reach a provider: its API, address and credentials.
#[derive(Debug, Clone)]
pub(crate) struct ProviderSpec {
    /// Provider name, which precedes the slash in a model name: `anthropic`.
    pub name: String,
    pub api: Api,
    /// Base URL, to which the API's path is appended: `/v1/messages` for Anthropic, `/chat/completions` for Chat
    /// Completions, `/responses` for Responses, and `/v1beta` for Gemini.
    pub base_url: String,
    pub key: Option<Secret>,
    /// Environment variable that may contain the key, for use in hints.
    pub key_variable: String,
    pub headers: ExtraHeaders,
    pub service: Service,
    /// Account with which requests are authenticated if there is no key.
    pub account: Option<CloudAccount>,
    pub timeouts: Timeouts,
}

/// Account on a cloud platform.
#[derive(Debug, Clone)]
pub(crate) enum CloudAccount {
    Google(Arc<google::GoogleAccount>),
    Aws(Arc<aws::AwsAccount>),
}

/// Splits a name such as `provider/name` at the first slash. The rest may contain further slashes.
pub(crate) fn split_name(full: &str) -> Option<(&str, &str)> {
    full.split_once('/').filter(|(provider, name)| !provider.is_empty() && !name.is_empty())
}

/// Creates a client for a model without sending anything. `model` is the name that the provider uses for it.
pub(crate) fn connect_with_catalogue(spec: ProviderSpec, model: &str, catalogue: &Catalogue) -> Result<Arc<dyn Model>, Failure> {
    Ok(Arc::new(remote::Remote::new(spec, model, catalogue.clone())?))
}

/// Creates a client that uses the built-in catalogue.
#[cfg(test)]
pub(crate) fn connect(spec: ProviderSpec, model: &str) -> Result<Arc<dyn Model>, Failure> {
    connect_with_catalogue(spec, model, &Catalogue::default())
}

/// Returns the function that creates an API's authentication headers.
fn auth_headers(api: Api) -> auth::HeaderFactory {
    match api {
        Api::Anthropic => anthropic::headers,
        Api::OpenAiChat => chat::headers,
        Api::OpenAiResponses => responses::headers,
        Api::Gemini => gemini::headers,
    }
}

/// Creates a client for a local model without sending anything. It uses the first server on `ports` that offers the
/// model or, if there is none, the address in `spec`.
pub(crate) fn connect_local(
    spec: ProviderSpec,
    model: &str,
    ports: Vec<u16>,
    catalogue: &Catalogue,
) -> Result<Arc<dyn Model>, Failure> {
    Ok(Arc::new(local::Local::new(spec, model, ports, catalogue.clone())?))
}

#[cfg(test)]
mod tests;
