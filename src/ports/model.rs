//! Interface to a language model with streamed responses.

use super::{BoxFuture, SearchEngine};
use crate::protocol::{Effort, Failure, ListedModel, Message, ModelFacts, Part, SecretString, StopReason, ToolDefinition, Usage};
use futures_util::stream::BoxStream;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Base64 data of the thread's images, by URI.
pub(crate) type Images = Arc<HashMap<String, Arc<str>>>;

/// Content of a single request. Messages and tools are shared to avoid copying a long session for every step.
#[derive(Debug, Clone)]
pub(crate) struct ModelRequest {
    pub system: Arc<str>,
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolDefinition]>,
    pub max_output_tokens: u64,
    /// Base64 data of the images to send; `None` if the model does not support images.
    pub images: Option<Images>,
    /// Reasoning effort; `None` to use the model's default.
    pub effort: Option<Effort>,
}

/// Item in a response stream. `Completed` is always the last item; a stream that ends without it is incomplete.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delta {
    Text(String),
    Reasoning(String),
    /// Tool call arguments are arriving. `bytes` is the number of bytes received so far.
    ToolCallProgress {
        tool_name: String,
        bytes: u64,
    },
    Completed(Completion),
}

/// Complete response, with its parts in the order in which the model produced them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completion {
    pub content: Vec<Part>,
    pub stop_reason: StopReason,
    pub usage: Usage,
    /// Model name, as reported in the response.
    pub model: Option<String>,
}

/// Error returned by a failed request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{failure}")]
pub(crate) struct ModelError {
    pub failure: Failure,
    /// Delay before the next attempt, as requested by the provider (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// Usage that the provider reported before the request failed.
    pub usage: Option<Usage>,
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        Self { failure, retry_after: None, usage: None }
    }
}

pub(crate) type ModelStream = BoxStream<'static, Result<Delta, ModelError>>;

pub(crate) trait Model: Send + Sync {
    /// Returns the model name, such as `anthropic/claude-sonnet-5`.
    fn name(&self) -> &str;
    /// Returns facts about the model that are known without sending a request.
    fn facts(&self) -> ModelFacts;
    /// Queries the server for additional facts. Returns `None` if there are none. Never fails, because a server that
    /// does not describe its models may still serve requests.
    fn query_facts(&self) -> BoxFuture<'static, Option<ModelFacts>> {
        Box::pin(std::future::ready(None))
    }
    /// Returns the provider's web search, which is sent as a separate request, or `None` if the provider's API has
    /// none.
    fn web_search(&self) -> Option<Arc<dyn SearchEngine>> {
        None
    }
    /// Sends the request when the stream is first polled. Dropping the stream cancels the request. Never retries,
    /// because the agent handles retries.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}

/// Access to the available models.
pub(crate) trait Models: Send + Sync {
    /// Opens a model without sending a request.
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure>;
    /// Saves an API key for this model's provider, as `aye auth login` does. Returns the location of the saved key.
    /// May block on a keyring.
    fn keep_key(&self, name: &str, key: &SecretString) -> Result<String, Failure>;
    /// Lists the known models, and explains why any providers could not be queried. If `ask` is set, also queries the
    /// providers and local model servers.
    fn list(&self, ask: bool) -> BoxFuture<'static, (Vec<ListedModel>, Vec<String>)>;
}
