//! Sample messages, calls and requests that the tests of all APIs share.

use crate::ports::ModelRequest;
use crate::protocol::{
    CallArguments, CallId, Image, Message, MessageId, Part, Role, TaskId, ToolCall, ToolDefinition, ToolResult,
};
use serde_json::json;
use std::sync::Arc;

pub(crate) fn message(id: &str, role: Role, content: Vec<Part>) -> Arc<Message> {
    Arc::new(Message {
        message_id: MessageId::new(id),
        role,
        content,
        token_count: 1,
        task_id: TaskId::new("t"),
        step_id: None,
        timestamp: jiff::Timestamp::UNIX_EPOCH,
    })
}

pub(crate) fn text(text: &str) -> Part {
    Part::Text { text: text.to_owned() }
}

/// Returns a tool call. `arguments` may be invalid JSON.
pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        tool_call_id: CallId::new(id),
        tool_name: name.to_owned(),
        arguments: CallArguments::parse(arguments),
    })
}

/// Returns the result of a search call.
pub(crate) fn found(id: &str, output: &str) -> Part {
    Part::ToolResult(ToolResult::success(CallId::new(id), "Grep", output))
}

/// Returns the result of a call that read an image.
pub(crate) fn picture(id: &str, uri: &str) -> ToolResult {
    let image = Image { uri: uri.to_owned(), media_type: "image/png".to_owned(), width: 2, height: 3, bytes: 4 };
    ToolResult { images: vec![image], ..ToolResult::success(CallId::new(id), "ReadFile", "Image, 2x3 png, 4 bytes") }
}

/// Returns a request that contains these messages and a single tool.
pub(crate) fn request(messages: impl Into<Vec<Arc<Message>>>) -> ModelRequest {
    ModelRequest {
        system: "be brief".into(),
        messages: messages.into(),
        tools: Arc::new([ToolDefinition {
            tool_name: "Grep".to_owned(),
            description: "searches".to_owned(),
            input_schema: json!({"type": "object"}),
        }]),
        max_output_tokens: 99,
        images: None,
        effort: None,
    }
}
