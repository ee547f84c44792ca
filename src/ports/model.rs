//! Interface to a model with streamed responses.

use super::{BoxFuture, SearchEngine};
use crate::protocol::{Effort, Failure, ListedModel, Message, ModelFacts, Part, SecretString, StopReason, ToolDefinition, Usage};
use futures_util::stream::BoxStream;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Images of the thread by URI, as base64.
pub(crate) type Images = Arc<HashMap<String, Arc<str>>>;

/// Content of one request. Messages and tools are shared, so that a long session is not copied for each step.
#[derive(Debug, Clone)]
pub(crate) struct ModelRequest {
    pub system: Arc<str>,
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolDefinition]>,
    pub max_output_tokens: u64,
    /// Base64 data of the images that are sent; `None` if the model does not support images.
    pub images: Option<Images>,
    /// Reasoning effort; `None` for the model's default.
    pub effort: Option<Effort>,
}

/// Item of the stream. `Completed` is the last one; a stream that ends without it is incomplete.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delta {
    Text(String),
    Reasoning(String),
    /// The arguments of a call are arriving; `bytes` is their length so far.
    ToolCallProgress {
        tool_name: String,
        bytes: u64,
    },
    Completed(Completion),
}

/// Complete response, in the order of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completion {
    pub content: Vec<Part>,
    pub stop_reason: StopReason,
    pub usage: Usage,
    /// Model name reported in the response.
    pub model: Option<String>,
}

/// Failed request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{failure}")]
pub(crate) struct ModelError {
    pub failure: Failure,
    /// Delay that the provider asked for (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// Usage that the provider reported before the failure.
    pub usage: Option<Usage>,
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        Self { failure, retry_after: None, usage: None }
    }
}

pub(crate) type ModelStream = BoxStream<'static, Result<Delta, ModelError>>;

pub(crate) trait Model: Send + Sync {
    /// Returns the name: `anthropic/claude-sonnet-5`.
    fn name(&self) -> &str;
    /// Returns the facts that are known about the model without a request.
    fn facts(&self) -> ModelFacts;
    /// Queries the server for more facts, if useful; `None` if there are none. Never fails, because a server that does
    /// not describe its models may still respond to requests.
    fn query_facts(&self) -> BoxFuture<'static, Option<ModelFacts>> {
        Box::pin(std::future::ready(None))
    }
    /// Returns the provider's web search, which is a separate request; `None` if its API has none.
    fn web_search(&self) -> Option<Arc<dyn SearchEngine>> {
        None
    }
    /// Sends the request when the stream is first polled. Dropping the stream cancels the request. Never retries; the
    /// agent does.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}

/// Available models.
pub(crate) trait Models: Send + Sync {
    /// Opens a model without sending requests.
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure>;
    /// Saves an API key for the provider of this model, like `aye auth login`, and returns where it was saved. May
    /// block on a keyring.
    fn keep_key(&self, name: &str, key: &SecretString) -> Result<String, Failure>;
    /// Lists the known models, and the providers that could not be queried, with the reasons. `ask`: also queries the
    /// providers and local model servers.
    fn list(&self, ask: bool) -> BoxFuture<'static, (Vec<ListedModel>, Vec<String>)>;
}
