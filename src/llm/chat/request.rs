//! Chat Completions requests, which are assembled from the JSON of individual messages.

use crate::llm::ids::Ids;
use crate::llm::images;
use crate::llm::json::{separate, write_json};
use crate::llm::quirks::{Field, Quirks};
use crate::llm::thread::{Fragment, ThreadCache};
use crate::ports::ModelRequest;
use crate::protocol::{CallArguments, Effort, Message, Part, Role, ToolCall, ToolDefinition};
use serde::Serialize;
use serde_json::{Map, Value};

/// Fields in which servers return reasoning. It is sent back in the field in which it arrived.
pub(super) const THINKING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum ChatMessage<'a> {
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
    Parts(Vec<MessagePart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagePart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageAddress },
}

#[derive(Serialize)]
struct ImageAddress {
    /// Image data as a `data:` URL.
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
struct ChatTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: DeclaredTool<'a>,
}

#[derive(Serialize)]
struct DeclaredTool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// Returns the complete request body.
pub(in crate::llm) fn body(
    model: &str,
    base_url: &str,
    request: &ModelRequest,
    quirks: &Quirks,
    thread: &mut ThreadCache,
) -> Vec<u8> {
    let host = host(base_url);
    let fragments =
        thread.update_as(quirks.form(ids(host)), request, |message, _, request, out| write_message(message, request, out));
    let size: usize = fragments.iter().map(|fragment| fragment.json.len() + 1).sum();
    let mut out = Vec::with_capacity(size + request.system.len() + 32 * 1024);
    out.extend_from_slice(br#"{"model":"#);
    write_json(&mut out, model);
    out.extend_from_slice(br#","stream":true"#);
    if quirks.sends(Field::StreamOptions) {
        out.extend_from_slice(br#","stream_options":{"include_usage":true}"#);
    }
    // If the server rejected one of the two names, use the other one.
    let new_limit = is_openai(host) == quirks.sends(Field::OtherLimit);
    out.extend_from_slice(if new_limit { br#","max_completion_tokens":"# } else { br#","max_tokens":"# });
    write_json(&mut out, &request.max_output_tokens.min(quirks.most_output.unwrap_or(u64::MAX)).max(1));
    if let Some(effort) = request.effort.filter(|_| quirks.sends(Field::Effort)) {
        write_effort(&mut out, host, effort);
    }
    if quirks.sends(Field::Tools) {
        write_tools(&mut out, &request.tools);
    }
    out.extend_from_slice(br#","messages":["#);
    let mut opening = Vec::new();
    if !request.system.trim().is_empty() {
        if quirks.sends(Field::SystemRole) {
            write_json(&mut out, &ChatMessage::System { content: &request.system });
        } else {
            write_json(&mut opening, &ChatMessage::User { content: Content::Text(&request.system) });
        }
    }
    let strict = host.ends_with("mistral.ai") || !quirks.sends(Field::WordsBehindResults);
    TurnWriter { out: &mut out, pending: Vec::new(), results: false, strict }.write(&opening, fragments);
    out.extend_from_slice(b"]}");
    out
}

/// Writes messages in an order that servers accept. Tool results directly follow the response with the calls. The
/// user's text and images come after them in a single message, because not all servers accept two.
struct TurnWriter<'a> {
    out: &'a mut Vec<u8>,
    /// User messages that are still to be written.
    pending: Vec<&'a [u8]>,
    /// Whether the pending messages follow tool results.
    results: bool,
    /// Whether the server insists on a response between tool results and a user message.
    strict: bool,
}

impl<'a> TurnWriter<'a> {
    fn write(mut self, opening: &'a [u8], fragments: &'a [Fragment]) {
        self.push_turn(opening);
        let mut told = fragments.iter().filter(|fragment| !fragment.json.is_empty()).peekable();
        if told.peek().is_some_and(|first| is_answer(first)) && opening.is_empty() {
            self.push_turn(br#"{"role":"user","content":"[the beginning of the conversation was removed]"}"#);
        }
        let mut answered = false;
        for fragment in told {
            answered = is_answer(fragment);
            if answered {
                self.flush();
                self.add(&fragment.json);
                continue;
            }
            let (results, rest) = fragment.json.split_at(fragment.split(results_end));
            self.results |= !results.is_empty();
            self.add(results);
            self.push_turn(rest.strip_prefix(b",").unwrap_or(rest));
        }
        if answered {
            // Many servers require the last message to be from the user.
            self.push_turn(br#"{"role":"user","content":"Continue."}"#);
        }
        self.flush();
    }

    fn add(&mut self, json: &[u8]) {
        if !json.is_empty() {
            separate(self.out);
            self.out.extend_from_slice(json);
        }
    }

    fn push_turn(&mut self, json: &'a [u8]) {
        if !json.is_empty() {
            self.pending.push(json);
        }
    }

    fn flush(&mut self) {
        if self.strict && self.results && !self.pending.is_empty() {
            self.add(br#"{"role":"assistant","content":"I have the results."}"#);
        }
        self.results = false;
        match &*std::mem::take(&mut self.pending) {
            [] => {}
            [one] => self.add(one),
            several => {
                separate(self.out);
                join(self.out, several);
            }
        }
    }
}

fn is_answer(fragment: &Fragment) -> bool {
    fragment.role == Role::Assistant
}

/// Merges user messages into one. If all of them are plain text, they are separated by blank lines. Otherwise, their
/// parts are concatenated.
fn join(out: &mut Vec<u8>, pending: &[&[u8]]) {
    const HEAD: &[u8] = br#"{"role":"user","content":"#;
    let contents: Vec<&[u8]> = pending.iter().filter_map(|json| json.strip_prefix(HEAD)?.strip_suffix(b"}")).collect();
    let inside = |content: &'_ [u8], first: u8| (content.first() == Some(&first)).then(|| content[1..content.len() - 1].to_vec());
    out.extend_from_slice(HEAD);
    if let Some(texts) = contents.iter().map(|content| inside(content, b'"')).collect::<Option<Vec<_>>>() {
        out.push(b'"');
        out.extend_from_slice(&texts.join(&br"\n\n"[..]));
        out.push(b'"');
    } else {
        out.push(b'[');
        for content in contents {
            separate(out);
            match inside(content, b'[') {
                Some(pieces) => out.extend_from_slice(&pieces),
                None => out.extend_from_slice(&[br#"{"type":"text","text":"#, content, b"}"].concat()),
            }
        }
        out.push(b']');
    }
    out.push(b'}');
}

/// Returns the offset at which the tool results in a message end. The marker is unambiguous, because quotes in JSON
/// text are always escaped.
fn results_end(json: &[u8]) -> usize {
    const USER: &[u8] = br#",{"role":"user","#;
    if json.starts_with(&USER[1..]) {
        return 0;
    }
    memchr::memmem::find(json, USER).unwrap_or(json.len())
}

fn host(base_url: &str) -> &str {
    base_url.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default()
}

/// Returns whether the host is OpenAI. Its newer models reject the old name of the output limit, whereas most other
/// servers accept only the old name.
fn is_openai(host: &str) -> bool {
    host.ends_with("openai.com") || host.ends_with("openai.azure.com")
}

fn ids(host: &str) -> Ids {
    if host.ends_with("mistral.ai") {
        Ids::Nine
    } else if is_openai(host) {
        Ids::UpTo(40)
    } else {
        Ids::Any
    }
}

fn write_effort(out: &mut Vec<u8>, host: &str, effort: Effort) {
    let word = if effort == Effort::Off { "none" } else { effort.as_str() };
    let field = match (host.ends_with("openrouter.ai"), effort) {
        (true, Effort::Off) => r#","reasoning":{"enabled":false}"#.to_owned(),
        (true, _) => format!(r#","reasoning":{{"effort":"{word}"}}"#),
        (false, _) => format!(r#","reasoning_effort":"{word}""#),
    };
    out.extend_from_slice(field.as_bytes());
}

fn write_tools(out: &mut Vec<u8>, tools: &[ToolDefinition]) {
    if tools.is_empty() {
        return;
    }
    out.extend_from_slice(br#","tools":["#);
    for tool in tools {
        separate(out);
        let function = DeclaredTool { name: &tool.tool_name, description: &tool.description, parameters: &tool.input_schema };
        write_json(out, &ChatTool { kind: "function", function });
    }
    out.push(b']');
}

fn write_message(message: &Message, request: &ModelRequest, out: &mut Vec<u8>) {
    match message.role {
        Role::Assistant => write_answer(message, out),
        Role::User | Role::Tool => {
            let text = texts(message);
            let mut pieces = Vec::new();
            for part in &message.content {
                if let Part::ToolResult(result) = part {
                    let (content, images) = images::sent_content(result, request);
                    separate(out);
                    write_json(out, &ChatMessage::Tool { tool_call_id: result.tool_call_id.as_str(), content: &content });
                    pieces.extend(images.into_iter().map(message_part));
                }
            }
            let results = !pieces.is_empty();
            let mut text = text;
            for part in &message.content {
                if let Part::Image(image) = part {
                    match images::content(image, request) {
                        Some(data) => pieces.push(message_part((&image.media_type, data))),
                        None => text.push_str(images::omitted_note(request)),
                    }
                }
            }
            if !pieces.is_empty() {
                // Results contain only text. Their images follow all results of the response.
                let told = "[the images of the results above, in order]";
                let text = if text.is_empty() && results { told } else { &text };
                if !text.is_empty() {
                    pieces.insert(0, MessagePart::Text { text });
                }
                separate(out);
                write_json(out, &ChatMessage::User { content: Content::Parts(pieces) });
            } else if !text.is_empty() {
                separate(out);
                write_json(out, &ChatMessage::User { content: Content::Text(&text) });
            }
        }
    }
}

/// Returns the text parts of a message, separated by blank lines.
fn texts(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Reasoning { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
    });
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn message_part<'a>((media_type, data): (&str, &str)) -> MessagePart<'a> {
    MessagePart::ImageUrl { image_url: ImageAddress { url: format!("data:{media_type};base64,{data}") } }
}

fn write_answer(message: &Message, out: &mut Vec<u8>) {
    let text = message.text();
    let tool_calls: Vec<Call<'_>> = message.tool_calls().map(call).collect();
    if text.is_empty() && tool_calls.is_empty() {
        return;
    }
    let content = (!text.is_empty()).then_some(text.as_str());
    write_json(out, &ChatMessage::Assistant { content, tool_calls, thinking: thinking(message) });
}

fn call(call: &ToolCall) -> Call<'_> {
    let arguments = match &call.arguments {
        CallArguments::Object(map) => serde_json::to_string(map).unwrap_or_default(),
        CallArguments::Malformed(text) => text.clone(),
    };
    Call { id: call.tool_call_id.as_str(), kind: "function", function: Function { name: &call.tool_name, arguments } }
}

/// Returns the reasoning fields of a message. Empty if the reasoning is from another provider.
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
