//! Result of a call: either its output, or its failure together with the output so far.

use crate::ports::BoxFuture;
use crate::protocol::{Artifact, CommandEnd, ErrorCode, Image, LeftOut, ModelUse, Proposal, SandboxAccess, ToolError};
use futures_util::FutureExt;

/// A failed call with the output that it produced before failing.
#[derive(Debug)]
pub(super) struct ToolFailure {
    pub error: ToolError,
    pub printed: String,
    pub denied: Vec<SandboxAccess>,
    pub changed: Option<Box<Proposal>>,
    /// Artifacts that contain the complete output.
    pub artifacts: Vec<Artifact>,
    /// How the command ended, if it was killed at its time limit.
    pub ended: Option<CommandEnd>,
    /// Part of the output that was omitted.
    pub left_out: Option<Box<LeftOut>>,
}

impl From<ToolError> for ToolFailure {
    fn from(error: ToolError) -> Self {
        let (printed, denied, artifacts) = (String::new(), Vec::new(), Vec::new());
        Self { error, printed, denied, changed: None, artifacts, ended: None, left_out: None }
    }
}

/// The output of a successful call.
#[derive(Debug, Default)]
pub(super) struct ToolOutput {
    pub text: String,
    /// Access that the sandbox blocked, causing a command to fail.
    pub denied: Vec<SandboxAccess>,
    /// Changes that a command made, if known.
    pub changed: Option<Box<Proposal>>,
    /// Artifacts that were stored along with the text.
    pub artifacts: Vec<Artifact>,
    /// Images for models that accept them. Each one is also stored as an artifact.
    pub images: Vec<Image>,
    /// How the command ended.
    pub ended: Option<CommandEnd>,
    /// Part of the text that was omitted.
    pub left_out: Option<Box<LeftOut>>,
    /// The model usage that the call caused, if any.
    pub used: Option<Box<ModelUse>>,
}

impl ToolOutput {
    /// Appends a note to the text.
    pub(super) fn with_note(mut self, note: &str) -> Self {
        self.text.push_str(note);
        self
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

pub(super) type CallResult = Result<ToolOutput, ToolFailure>;

/// Runs blocking work on a separate thread. A panic is returned as an error.
pub(super) fn blocking<T: Into<ToolOutput> + Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolFailure> + Send + 'static,
) -> BoxFuture<'static, CallResult> {
    async move {
        tokio::task::spawn_blocking(|| work().map(Into::into)).await.unwrap_or_else(|error| {
            let message = format!("the tool crashed: {error}");
            Err(ToolError::new(ErrorCode::ToolExecutionFailed, message).into())
        })
    }
    .boxed()
}
