//! Messages API requests, which are assembled from the JSON of individual messages.

use super::thinking;
use crate::llm::ids::Ids;
use crate::llm::images;
use crate::llm::json::{separate, write_json};
use crate::llm::quirks::{Field, Quirks};
use crate::llm::thread::{Fragment, ThreadCache};
use crate::ports::ModelRequest;
use crate::protocol::{CallArguments, Message, Part, Role, ToolCall, ToolDefinition, ToolResult, ToolStatus};
use serde::Serialize;
use serde_json::Value;

/// Cache marker that follows the last block of a message. The provider caches everything up to it for the next request.
const BREAKPOINT: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
/// Number of recent user turns at which a cached prefix ends. The older of them is where the previous request ended.
const CACHED_TURNS: usize = 2;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagesBlock<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    Image {
        source: Source<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<MessagesBlock<'a>>),
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct MessagesTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageRole {
    User,
    Assistant,
}

/// Returns the complete request body.
pub(in crate::llm) fn body(model: &str, request: &ModelRequest, quirks: &Quirks, thread: &mut ThreadCache) -> Vec<u8> {
    let fragments = thread.update_as(quirks.form(Ids::Any), request, |message, _, request, out| blocks(message, request, out));
    let size: usize = fragments.iter().map(|fragment| fragment.json.len() + 64).sum();
    let mut out = Vec::with_capacity(size + request.system.len() + 32 * 1024);
    out.extend_from_slice(br#"{"model":"#);
    write_json(&mut out, model);
    out.extend_from_slice(br#","max_tokens":"#);
    let most_output = request.max_output_tokens.min(quirks.most_output.unwrap_or(u64::MAX)).max(1);
    write_json(&mut out, &most_output);
    out.extend_from_slice(br#","stream":true"#);
    thinking::write(&mut out, model, request.effort, most_output, quirks, fragments);
    let system = !request.system.trim().is_empty();
    let breakpoint: &[u8] = if quirks.sends(Field::Cache) { BREAKPOINT } else { b"" };
    if quirks.sends(Field::Tools) {
        write_tools(&mut out, &request.tools, if system { b"" } else { breakpoint });
    }
    if system {
        out.extend_from_slice(br#","system":["#);
        write_block(&mut out, &MessagesBlock::Text { text: &request.system });
        mark(&mut out, breakpoint);
        out.push(b']');
    }
    out.extend_from_slice(br#","messages":["#);
    write_turns(&mut out, fragments, breakpoint);
    out.extend_from_slice(b"]}");
    out
}

fn write_tools(out: &mut Vec<u8>, tools: &[ToolDefinition], after_last: &[u8]) {
    if tools.is_empty() {
        return;
    }
    out.extend_from_slice(br#","tools":["#);
    for tool in tools {
        separate(out);
        write_json(
            out,
            &MessagesTool { name: &tool.tool_name, description: &tool.description, input_schema: &tool.input_schema },
        );
    }
    mark(out, after_last);
    out.push(b']');
}

/// Writes messages. Adjacent messages with the same role are merged, because all results of a step must be in one
/// message.
fn write_turns(out: &mut Vec<u8>, fragments: &[Fragment], breakpoint: &[u8]) {
    let told: Vec<&Fragment> = fragments.iter().filter(|fragment| !fragment.json.is_empty()).collect();
    let turns: Vec<&[&Fragment]> = told.chunk_by(|a, b| speaker(a) == speaker(b)).collect();
    // The API requires the first and last message to be from the user. The model would continue a trailing response
    // instead of starting a new one.
    let is_answer = |turn: Option<&&[&Fragment]>| turn.is_none_or(|turn| speaker(turn[0]) == MessageRole::Assistant);
    if is_answer(turns.first()) {
        out.extend_from_slice(
            br#"{"role":"user","content":[{"type":"text","text":"[the beginning of the conversation was removed]"}]}"#,
        );
    }
    let go_on = !turns.is_empty() && is_answer(turns.last());
    let mut user_turns = turns.iter().filter(|turn| speaker(turn[0]) == MessageRole::User).count();
    for turn in turns {
        separate(out);
        let user = speaker(turn[0]) == MessageRole::User;
        let head: &[u8] = if user { br#"{"role":"user","content":["# } else { br#"{"role":"assistant","content":["# };
        out.extend_from_slice(head);
        for fragment in turn {
            separate(out);
            out.extend_from_slice(&fragment.json);
        }
        if user {
            if user_turns <= CACHED_TURNS {
                mark(out, breakpoint);
            }
            user_turns -= 1;
        }
        out.extend_from_slice(b"]}");
    }
    if go_on {
        out.extend_from_slice(br#",{"role":"user","content":[{"type":"text","text":"Continue."}]}"#);
    }
}

/// Adds a cache marker to the object at the end of `out`.
fn mark(out: &mut Vec<u8>, breakpoint: &[u8]) {
    if !breakpoint.is_empty() && out.pop().is_some() {
        out.extend_from_slice(breakpoint);
        out.push(b'}');
    }
}

fn speaker(fragment: &Fragment) -> MessageRole {
    match fragment.role {
        Role::User | Role::Tool => MessageRole::User,
        Role::Assistant => MessageRole::Assistant,
    }
}

/// Writes the blocks of a message, separated by commas.
fn blocks(message: &Message, request: &ModelRequest, out: &mut Vec<u8>) {
    for part in &message.content {
        match part {
            // The API rejects text without visible characters.
            Part::Text { text } if text.trim().is_empty() => {}
            Part::Text { text } => write_block(out, &MessagesBlock::Text { text }),
            Part::Reasoning { opaque, .. } => {
                // The format of another provider's reasoning differs, so it is omitted.
                if let Some(block) = opaque.as_ref().filter(|block| thinking::is_from_api(block)) {
                    separate(out);
                    write_json(out, block);
                }
            }
            Part::ToolCall(call) => write_call(out, call),
            Part::ToolResult(result) => write_result(out, result, request),
            Part::Image(image) => match images::content(image, request) {
                Some(data) => {
                    write_block(
                        out,
                        &MessagesBlock::Image { source: Source { kind: "base64", media_type: &image.media_type, data } },
                    );
                }
                None => write_block(out, &MessagesBlock::Text { text: images::omitted_note(request) }),
            },
        }
    }
}

fn write_block(out: &mut Vec<u8>, block: &MessagesBlock<'_>) {
    separate(out);
    write_json(out, block);
}

fn write_call(out: &mut Vec<u8>, call: &ToolCall) {
    let input = match &call.arguments {
        CallArguments::Object(map) => Value::Object(map.clone()),
        // The API accepts only objects; the result describes the error.
        CallArguments::Malformed(_) => Value::Object(serde_json::Map::new()),
    };
    write_block(out, &MessagesBlock::ToolUse { id: call.tool_call_id.as_str(), name: &call.tool_name, input: &input });
}

fn write_result(out: &mut Vec<u8>, result: &ToolResult, request: &ModelRequest) {
    let is_error = match result.status {
        ToolStatus::Succeeded => false,
        ToolStatus::Failed | ToolStatus::Denied => true,
    };
    let (text, images) = images::sent_content(result, request);
    let content = if images.is_empty() {
        Content::Text(&text)
    } else {
        // The API rejects text without visible characters.
        let text = (!text.trim().is_empty()).then_some(MessagesBlock::Text { text: &text });
        let source = |(media_type, data)| MessagesBlock::Image { source: Source { kind: "base64", media_type, data } };
        Content::Blocks(text.into_iter().chain(images.into_iter().map(source)).collect())
    };
    write_block(out, &MessagesBlock::ToolResult { tool_use_id: result.tool_call_id.as_str(), content, is_error });
}
