//! Presents the tool calls of `aye apply` as responses from a model, so they are judged, approved, recorded and undone
//! like any other call.

use crate::ports::{Completion, Delta, Model, ModelRequest, ModelStream};
use crate::protocol::{
    CallArguments, CallId, Message, ModelFacts, Part, Price, Role, StopReason, ToolCall, ToolResult, ToolStatus, Usage,
};
use crate::tools::{APPLY_PATCH_FILE, FILES_PER_CALL, PatchFile};
use serde_json::json;
use std::sync::Arc;

/// Context window, in tokens, reported for the simulated model.
const WINDOW: u64 = 1_000_000;

/// Returns the calls that apply a patch file. All files changed by a call are changed together.
pub(super) fn calls(patch: &PatchFile) -> Vec<ToolCall> {
    let call = |first: usize| ToolCall {
        tool_call_id: CallId::new(format!("apply_{first}")),
        tool_name: APPLY_PATCH_FILE.to_owned(),
        arguments: CallArguments::parse(&json!({"digest": patch.digest(), "first": first}).to_string()),
    };
    (0..patch.header().files.len()).step_by(FILES_PER_CALL).map(call).collect()
}

/// Simulated model that issues a list of calls in order. Once a call fails, the remaining calls are skipped.
pub(super) struct ListedCalls(pub Vec<ToolCall>);

impl ListedCalls {
    fn next(&self, messages: &[Arc<Message>]) -> Completion {
        let made = messages.iter().filter(|message| message.role == Role::Assistant).count();
        let results = || messages.iter().flat_map(|message| &message.content);
        let has_failed = results().any(|part| match part {
            Part::ToolResult(ToolResult { status, .. }) => *status != ToolStatus::Succeeded,
            _ => false,
        });
        let call = self.0.get(made).filter(|_| !has_failed);
        let (part, stop_reason) = match call {
            Some(call) => (Part::ToolCall(call.clone()), StopReason::ToolUse),
            None if has_failed => {
                (Part::Text { text: "The patch file was not applied completely.".to_owned() }, StopReason::EndTurn)
            }
            None => (Part::Text { text: "The patch file is applied.".to_owned() }, StopReason::EndTurn),
        };
        Completion { content: vec![part], stop_reason, usage: Usage::default(), model: None }
    }
}

impl Model for ListedCalls {
    /// Returns an empty name, so the session uses a model of its own when it is continued.
    fn name(&self) -> &'static str {
        ""
    }

    fn facts(&self) -> ModelFacts {
        let free = Price { input: 0.0, output: 0.0, cache_read: 0.0, cache_write: 0.0 };
        ModelFacts::new("", WINDOW, Some(free))
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let completion = self.next(&request.messages);
        Box::pin(futures_util::stream::once(std::future::ready(Ok(Delta::Completed(completion)))))
    }
}
