//! A model that answers in a stream.

use crate::protocol::{Failure, Message, Part, StopReason, ToolDefinition, Usage};
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
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        Self { failure, retry_after: None }
    }
}

pub type ModelStream = BoxStream<'static, Result<Delta, ModelError>>;

pub trait Model: Send + Sync {
    /// `anthropic/claude-sonnet-5`.
    fn name(&self) -> &str;
    /// Input window in tokens.
    fn context_window(&self) -> u64;
    /// Whether it can be shown images.
    fn takes_images(&self) -> bool {
        false
    }
    /// Dollars for this usage; `None` when the price is unknown.
    fn cost_usd(&self, usage: &Usage) -> Option<f64>;
    /// Sends the request when the stream is first polled; dropping the stream ends it. Never retries: the agent does.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}
