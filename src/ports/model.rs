//! A model that answers in a stream.

use super::BoxFuture;
use crate::protocol::{Effort, Failure, KeyText, ListedModel, Message, ModelFacts, Part, StopReason, ToolDefinition, Usage};
use futures_util::stream::BoxStream;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Images of the thread by URI, each its content in base64.
pub type Images = Arc<HashMap<String, Arc<str>>>;

/// Everything one request says. Messages and tools are shared, so that a long session is not copied for each step.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub system: Arc<str>,
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolDefinition]>,
    pub max_output_tokens: u64,
    /// Those of the messages that are sent; none where the model takes none.
    pub images: Option<Images>,
    /// How hard the model is to think; without one as it does by itself.
    pub effort: Option<Effort>,
}

/// What a stream yields; `Completed` is the last, and a stream that ends without it is a cut stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// Arguments of a call arrive; `bytes` is how many until now.
    ToolCallProgress {
        tool_name: String,
        bytes: u64,
    },
    Completed(Completion),
}

/// The whole answer, in the order the model gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    pub content: Vec<Part>,
    pub stop_reason: StopReason,
    pub usage: Usage,
    /// The model's own name for itself, where the answer has it.
    pub model: Option<String>,
}

/// A request that gave no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{failure}")]
pub struct ModelError {
    pub failure: Failure,
    /// What the provider asked for (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// What the provider said of its cost before it failed.
    pub usage: Option<Usage>,
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        Self { failure, retry_after: None, usage: None }
    }
}

pub type ModelStream = BoxStream<'static, Result<Delta, ModelError>>;

pub trait Model: Send + Sync {
    /// `anthropic/claude-sonnet-5`.
    fn name(&self) -> &str;
    /// What is known of it without asking anybody.
    fn facts(&self) -> ModelFacts;
    /// Asks its server what else there is to know, where it is worth it; `None` where nothing new comes of it. Never an error: a
    /// server that says nothing of its models can still answer.
    fn look_up(&self) -> BoxFuture<'static, Option<ModelFacts>> {
        Box::pin(std::future::ready(None))
    }
    /// Sends the request when the stream is first polled; dropping the stream ends it. Never retries: the agent does.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}

/// The models that there are.
pub trait Models: Send + Sync {
    /// Nothing is sent yet.
    fn open(&self, name: &str) -> Result<Arc<dyn Model>, Failure>;
    /// Keeps a key for the provider of this model, as `aye auth login` does; where it is now, in words. May wait for a keyring.
    fn keep_key(&self, name: &str, key: &KeyText) -> Result<String, Failure>;
    /// Those that are known; `ask`: those too that the providers and the servers of this machine tell. With what could not be
    /// asked and why.
    fn list(&self, ask: bool) -> BoxFuture<'static, (Vec<ListedModel>, Vec<String>)>;
}
