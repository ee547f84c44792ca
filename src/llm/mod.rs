//! Providers, and how each says what the agent means.

mod anthropic;
mod arguments;
mod auth;
mod catalogue;
mod chat;
mod deltas;
pub mod demo;
mod error;
mod gemini;
mod ids;
mod images;
mod json;
mod limits;
mod local;
pub mod local_discovery;
mod model_list;
mod no_model;
mod opaque_parts;
mod quirks;
mod remote;
mod responses;
mod sse;
mod stream_reader;
mod thread;
mod thread_repair;

pub use catalogue::Catalogue;
pub use local::said as said_of_servers;
pub use model_list::{Told, models as list_models};
pub use no_model::Unset;

use crate::ports::Model;
use crate::protocol::Failure;
use crate::sys::http::Timeouts;
use std::fmt;
use std::sync::Arc;

/// The data of all events in a body that comes in these pieces, for `fuzz/`.
#[cfg(feature = "fuzzing")]
pub fn events_in(pieces: Vec<Vec<u8>>) -> Vec<Result<String, String>> {
    use futures_util::{FutureExt, StreamExt, stream};
    let events = sse::events(stream::iter(pieces.into_iter().map(|piece| Ok(piece.into()))));
    let told = events.map(|event| event.map(|event| event.data).map_err(|error| error.to_string()));
    // Nothing of it waits for anything.
    told.collect().now_or_never().unwrap_or_default()
}

/// The bytes of text, thinking and arguments that a body hands on which comes in these pieces, for `benches/`; all the way that an
/// answer takes but for the connection.
#[cfg(feature = "fuzzing")]
pub async fn heard_in(api: Api, pieces: Vec<bytes::Bytes>) -> Result<usize, String> {
    use crate::ports::Delta;
    use futures_util::stream;
    let [provider, model, key_variable, base_url] = ["p", "m", "KEY", "http://p"].map(str::to_owned);
    let speaker = error::Speaker { provider, model, key_variable, base_url };
    let events = sse::events(stream::iter(pieces.into_iter().map(Ok)));
    let answer = remote::answer(api, speaker.clone());
    let mut listener = stream_reader::Listener::new(speaker, events, answer, std::time::Duration::from_secs(60));
    let mut heard = 0;
    while !listener.at_end() {
        let outcome = listener.listen().await;
        for delta in listener.take() {
            heard += match delta {
                Delta::Text(text) | Delta::Reasoning(text) => text.len(),
                Delta::ToolCallProgress { .. } | Delta::Completed(_) => 0,
            };
        }
        outcome.map_err(|error| error.to_string())?;
    }
    let completion = listener.finish().map_err(|error| error.to_string())?;
    Ok(heard + completion.content.len())
}

/// The language a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and every server that speaks like it.
    OpenAiChat,
    /// Gemini, as its own interface has it.
    Gemini,
    /// OpenAI Responses, without anything kept there.
    OpenAiResponses,
}

impl Api {
    /// Where the provider itself is; a key is needed there.
    pub fn home(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }
}

/// A key; nothing prints it.
#[derive(Clone)]
pub struct Secret(Held);

#[derive(Clone)]
enum Held {
    Text(String),
    Later(Arc<dyn Fn() -> Result<String, String> + Send + Sync>),
}

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Held::Text(text.into()))
    }

    /// One that the first request asks for, in a thread where it may take a moment.
    pub fn later(ask: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Held::Later(Arc::new(ask)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Who answers, and where.
#[derive(Debug, Clone)]
pub struct ProviderSpec {
    /// What stands before the slash of a model's name: `anthropic`.
    pub name: String,
    pub api: Api,
    /// For Anthropic what stands before `/v1/messages`, for chat what stands before `/chat/completions`,
    /// for Responses what stands before `/responses`, for Gemini what stands before `/v1beta`.
    pub base_url: String,
    pub key: Option<Secret>,
    /// The variable the key comes from, for the sentence that asks for it.
    pub key_variable: String,
    pub timeouts: Timeouts,
}

/// Both halves of `provider/name`; the name may have slashes of its own.
pub fn split_name(full: &str) -> Option<(&str, &str)> {
    full.split_once('/').filter(|(provider, name)| !provider.is_empty() && !name.is_empty())
}

/// A model at a provider; `model` is the name the provider knows. Nothing is sent yet.
pub fn connect_knowing(spec: ProviderSpec, model: &str, catalogue: &Catalogue) -> Result<Arc<dyn Model>, Failure> {
    Ok(Arc::new(remote::Remote::new(spec, model, catalogue.clone())?))
}

/// The same with what everybody knows.
#[cfg(test)]
pub fn connect(spec: ProviderSpec, model: &str) -> Result<Arc<dyn Model>, Failure> {
    connect_knowing(spec, model, &Catalogue::default())
}

/// How a key travels.
fn headers_of(api: Api) -> fn(Option<String>) -> auth::Headers {
    match api {
        Api::Anthropic => anthropic::headers,
        Api::OpenAiChat => chat::headers,
        Api::OpenAiResponses => responses::headers,
        Api::Gemini => gemini::headers,
    }
}

/// A model of this machine: at the first of the servers at `ports` that has it, else where `spec` says. Nobody is asked yet.
pub fn connect_local(spec: ProviderSpec, model: &str, ports: Vec<u16>, catalogue: &Catalogue) -> Result<Arc<dyn Model>, Failure> {
    Ok(Arc::new(local::Local::new(spec, model, ports, catalogue.clone())?))
}

#[cfg(test)]
mod tests;
