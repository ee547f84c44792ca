//! A request to a Chat Completions server, joined from the messages' own JSON.

use crate::llm::images;
use crate::llm::json::{separate, write_json};
use crate::llm::thread::Thread;
use crate::ports::ModelRequest;
use crate::protocol::{Arguments, Message, Part, Role, ToolCall, ToolDefinition};
use serde::Serialize;
use serde_json::{Map, Value};

/// What a server may have called its thinking; it goes back under the same name.
pub(super) const THINKING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Said<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
        #[serde(flatten)]
        thinking: Map<String, Value>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Piece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Address },
}

#[derive(Serialize)]
struct Address {
    /// The image itself, as a `data:` URL.
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Declared<'a>,
}

#[derive(Serialize)]
struct Declared<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// The whole body.
pub(in crate::llm) fn body(model: &str, base_url: &str, request: &ModelRequest, thread: &mut Thread) -> Vec<u8> {
    let fragments = thread.update(request, write_message);
    let size: usize = fragments.iter().map(|fragment| fragment.json.len() + 1).sum();
    let mut out = Vec::with_capacity(size + request.system.len() + 32 * 1024);
    out.extend_from_slice(br#"{"model":"#);
    write_json(&mut out, model);
    out.extend_from_slice(br#","stream":true,"stream_options":{"include_usage":true},"#);
    out.extend_from_slice(limit_field(base_url));
    write_json(&mut out, &request.max_output_tokens.max(1));
    write_tools(&mut out, &request.tools);
    out.extend_from_slice(br#","messages":["#);
    if !request.system.trim().is_empty() {
        write_json(&mut out, &Said::System { content: &request.system });
    }
    for fragment in fragments.iter().filter(|fragment| !fragment.json.is_empty()) {
        separate(&mut out);
        out.extend_from_slice(&fragment.json);
    }
    out.extend_from_slice(b"]}");
    out
}

/// OpenAI's newer models refuse the old name, most other servers do not know the new one.
fn limit_field(base_url: &str) -> &'static [u8] {
    let host = base_url.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
    if host.ends_with("openai.com") || host.ends_with("openai.azure.com") {
        br#""max_completion_tokens":"#
    } else {
        br#""max_tokens":"#
    }
}

fn write_tools(out: &mut Vec<u8>, tools: &[ToolDefinition]) {
    if tools.is_empty() {
        return;
    }
    out.extend_from_slice(br#","tools":["#);
    for tool in tools {
        separate(out);
        let function = Declared { name: &tool.tool_name, description: &tool.description, parameters: &tool.input_schema };
        write_json(out, &Tool { kind: "function", function });
    }
    out.push(b']');
}

fn write_message(message: &Message, request: &ModelRequest, out: &mut Vec<u8>) {
    match message.role {
        Role::Assistant => write_answer(message, out),
        Role::User | Role::Tool => {
            let text = message.text();
            let mut pieces = Vec::new();
            for part in &message.content {
                if let Part::ToolResult(result) = part {
                    let (content, images) = images::told(result, request);
                    separate(out);
                    write_json(out, &Said::Tool { tool_call_id: result.tool_call_id.as_str(), content: &content });
                    pieces.extend(images.into_iter().map(piece));
                }
            }
            let results = !pieces.is_empty();
            let mut text = text;
            for part in &message.content {
                if let Part::Image(image) = part {
                    match images::content(image, request) {
                        Some(data) => pieces.push(piece((&image.media_type, data))),
                        None => text.push_str(images::note(request)),
                    }
                }
            }
            if !pieces.is_empty() {
                // A result is text alone; what it shows comes after all results of the answer.
                let told = "[the images of the results above, in their order]";
                let text = if text.is_empty() && results { told } else { &text };
                if !text.is_empty() {
                    pieces.insert(0, Piece::Text { text });
                }
                separate(out);
                write_json(out, &Said::User { content: Content::Parts(pieces) });
            } else if !text.is_empty() {
                separate(out);
                write_json(out, &Said::User { content: Content::Text(&text) });
            }
        }
    }
}

fn piece<'a>((media_type, data): (&str, &str)) -> Piece<'a> {
    Piece::ImageUrl { image_url: Address { url: format!("data:{media_type};base64,{data}") } }
}

fn write_answer(message: &Message, out: &mut Vec<u8>) {
    let text = message.text();
    let tool_calls: Vec<Call<'_>> = message.tool_calls().map(call).collect();
    if text.is_empty() && tool_calls.is_empty() {
        return;
    }
    let content = (!text.is_empty()).then_some(text.as_str());
    write_json(out, &Said::Assistant { content, tool_calls, thinking: thinking(message) });
}

fn call(call: &ToolCall) -> Call<'_> {
    let arguments = match &call.arguments {
        Arguments::Object(map) => serde_json::to_string(map).unwrap_or_default(),
        Arguments::Malformed(text) => text.clone(),
    };
    Call { id: call.tool_call_id.as_str(), kind: "function", function: Function { name: &call.tool_name, arguments } }
}

/// The fields a server sent its thinking in; another provider's thinking has none of them.
fn thinking(message: &Message) -> Map<String, Value> {
    let mut fields = Map::new();
    for part in &message.content {
        if let Part::Reasoning { opaque: Some(Value::Object(opaque)), .. } = part {
            for name in THINKING_FIELDS {
                if let Some(value) = opaque.get(name) {
                    fields.insert(name.to_owned(), value.clone());
                }
            }
        }
    }
    fields
}
