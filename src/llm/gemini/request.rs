//! Gemini API requests, which are assembled from the JSON of individual messages.

use super::answer::{GENERATED_ID_PREFIX, parse_signature};
use super::schema;
use super::version::Version;
use crate::llm::images;
use crate::llm::json::{separate, write_json};
use crate::llm::quirks::{Field, Quirks};
use crate::llm::thread::{Fragment, ThreadCache};
use crate::ports::ModelRequest;
use crate::protocol::{CallArguments, Effort, Message, Part, Role, ToolCall, ToolDefinition, ToolResult, ToolStatus};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Value that the API accepts instead of a signature for calls that another model made.
const UNSIGNED: &str = "skip_thought_signature_validator";
/// Smallest thinking budget to request, in tokens.
const MIN_THINKING: u64 = 512;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Response<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Data<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

impl RequestPart<'_> {
    const EMPTY: Self =
        Self { text: None, function_call: None, function_response: None, inline_data: None, thought_signature: None };
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: FunctionOutput<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<RequestPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum FunctionOutput<'a> {
    Output(&'a str),
    Error(&'a str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation {
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Thinking>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Thinking {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

/// Returns the complete request body.
pub(in crate::llm) fn body(model: &str, request: &ModelRequest, quirks: &Quirks, thread: &mut ThreadCache) -> Vec<u8> {
    let version = Version::parse(model);
    let fragments = thread.update(request, |message, _, request, out| write_parts(message, request, version, out));
    let size: usize = fragments.iter().map(|fragment| fragment.json.len() + 32).sum();
    let mut out = Vec::with_capacity(size + request.system.len() + 32 * 1024);
    out.push(b'{');
    if !request.system.trim().is_empty() {
        out.extend_from_slice(br#""systemInstruction":{"parts":["#);
        write_json(&mut out, &RequestPart { text: Some(&request.system), ..RequestPart::EMPTY });
        out.extend_from_slice(b"]}");
    }
    if quirks.sends(Field::Tools) {
        write_tools(&mut out, &request.tools);
    }
    let max_output_tokens = request.max_output_tokens.min(quirks.most_output.unwrap_or(u64::MAX)).max(1);
    let effort = request.effort.filter(|_| quirks.sends(Field::Thinking) && quirks.sends(Field::Effort));
    let thinking_config = effort.map(|effort| thinking(effort, version, max_output_tokens));
    separate(&mut out);
    out.extend_from_slice(br#""generationConfig":"#);
    write_json(&mut out, &Generation { max_output_tokens, thinking_config });
    out.extend_from_slice(br#","contents":["#);
    write_contents(&mut out, fragments);
    out.extend_from_slice(b"]}");
    out
}

fn write_tools(out: &mut Vec<u8>, tools: &[ToolDefinition]) {
    if tools.is_empty() {
        return;
    }
    separate(out);
    out.extend_from_slice(br#""tools":[{"functionDeclarations":["#);
    for tool in tools {
        separate(out);
        let parameters_json_schema = schema::convert_parameters(&tool.input_schema);
        write_json(out, &DeclaredFunction { name: &tool.tool_name, description: &tool.description, parameters_json_schema });
    }
    out.extend_from_slice(b"]}]");
}

/// Returns the thinking configuration. This is a level for models that support levels, and otherwise a number of tokens
/// within the limits of the model and of the response.
fn thinking(effort: Effort, version: Version, max_output_tokens: u64) -> Thinking {
    let include_thoughts = effort != Effort::Off;
    if version.is_third() {
        let level = match effort {
            Effort::Off if version.pro => "low",
            Effort::Off => "minimal",
            Effort::Minimal if version.pro => "low",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            // The first large model of the third generation has only two levels.
            Effort::Medium if version.pro && (version.major, version.minor) == (3, 0) => "high",
            Effort::Medium => "medium",
            // The API has no higher level.
            Effort::High | Effort::Xhigh | Effort::Max => "high",
        };
        return Thinking { include_thoughts, thinking_budget: None, thinking_level: Some(level) };
    }
    let tokens = match effort {
        Effort::Off if version.pro => MIN_THINKING,
        Effort::Off => 0,
        Effort::Minimal => MIN_THINKING,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        // Only the large models accept more tokens.
        Effort::Xhigh | Effort::Max if version.pro => 32_768,
        Effort::High | Effort::Xhigh | Effort::Max => 24_576,
    };
    // Thinking counts as output, so part of the output limit is left for the response.
    let budget = if tokens == 0 { 0 } else { tokens.min(max_output_tokens / 2).max(MIN_THINKING) };
    Thinking { include_thoughts, thinking_budget: Some(budget), thinking_level: None }
}

/// Writes the elements of the `contents` array. Adjacent messages with the same role are merged, except that tool
/// results are kept separate, because the API rejects other parts that follow them. The API also rejects requests that
/// begin or end with a model turn, so a user turn is added there.
fn write_contents(out: &mut Vec<u8>, fragments: &[Fragment]) {
    const USER: &[u8] = br#"{"role":"user","parts":["#;
    const MODEL: &[u8] = br#"{"role":"model","parts":["#;
    let is_answer = |fragment: &Fragment| fragment.role == Role::Assistant;
    let told: Vec<&Fragment> = fragments.iter().filter(|fragment| !fragment.json.is_empty()).collect();
    if told.first().is_some_and(|first| is_answer(first)) {
        write_content(out, USER, [&br#"{"text":"[the beginning of the conversation was removed]"}"#[..]]);
    }
    for contents in told.chunk_by(|a, b| is_answer(a) == is_answer(b)) {
        if is_answer(contents[0]) {
            write_content(out, MODEL, contents.iter().map(|fragment| &*fragment.json));
            continue;
        }
        let halves = || contents.iter().map(|fragment| fragment.json.split_at(fragment.split(results_end)));
        write_content(out, USER, halves().map(|(results, _)| results));
        write_content(out, USER, halves().map(|(_, rest)| rest.strip_prefix(b"\n").unwrap_or(rest)));
    }
    if told.last().is_some_and(|last| is_answer(last)) {
        write_content(out, USER, [&br#"{"text":"Continue."}"#[..]]);
    }
}

/// Writes a content object that consists of these parts, unless there are none.
fn write_content<'a>(out: &mut Vec<u8>, head: &[u8], parts: impl IntoIterator<Item = &'a [u8]>) {
    let mut parts = parts.into_iter().filter(|parts| !parts.is_empty()).peekable();
    if parts.peek().is_none() {
        return;
    }
    separate(out);
    out.extend_from_slice(head);
    for parts in parts {
        separate(out);
        out.extend_from_slice(parts);
    }
    out.extend_from_slice(b"]}");
}

/// Returns the offset at which the tool results in a message end. Any other parts follow a line break, which does not
/// occur elsewhere in the JSON.
fn results_end(json: &[u8]) -> usize {
    memchr::memchr(b'\n', json).unwrap_or(json.len())
}

/// Writes the parts of a message, separated by commas. Parts other than tool results are put on a separate line.
fn write_parts(message: &Message, request: &ModelRequest, version: Version, out: &mut Vec<u8>) {
    if message.role == Role::Assistant {
        return write_answer(message, version, out);
    }
    let mut after = Vec::new();
    for part in &message.content {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => write_piece(&mut after, &RequestPart { text: Some(text), ..RequestPart::EMPTY }),
            Part::ToolResult(result) => write_result(out, &mut after, result, request, version),
            Part::Image(image) => match images::content(image, request) {
                Some(data) => {
                    let data = Data { mime_type: &image.media_type, data };
                    write_piece(&mut after, &RequestPart { inline_data: Some(data), ..RequestPart::EMPTY });
                }
                None => write_piece(&mut after, &RequestPart { text: Some(images::omitted_note(request)), ..RequestPart::EMPTY }),
            },
            Part::Reasoning { .. } | Part::ToolCall(_) => {}
        }
    }
    if !after.is_empty() {
        out.push(b'\n');
        out.extend_from_slice(&after);
    }
}

fn write_answer(message: &Message, version: Version, out: &mut Vec<u8>) {
    // Signature of the next part.
    let mut next: Option<(&str, &str)> = None;
    let mut signed = false;
    for part in &message.content {
        let mut signature_for = |what: &str| next.take().filter(|(signs, _)| *signs == what).map(|(_, signature)| signature);
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => {
                let thought_signature = signature_for("text");
                write_piece(out, &RequestPart { text: Some(text), thought_signature, ..RequestPart::EMPTY });
            }
            Part::Reasoning { opaque: Some(opaque), .. } => {
                if let Some(signature) = parse_signature(opaque) {
                    next = Some(signature);
                } else if is_own_part(opaque) {
                    separate(out);
                    write_json(out, opaque);
                }
            }
            // Unsigned thoughts are summaries, which the model does not need.
            Part::Reasoning { opaque: None, .. } => {}
            Part::ToolCall(call) => {
                // Of several parallel calls, only the first one is signed.
                let made_elsewhere = version.is_third() && !signed;
                let thought_signature = signature_for("functionCall").or(made_elsewhere.then_some(UNSIGNED));
                signed = true;
                write_call(out, call, thought_signature);
            }
            Part::ToolResult(_) | Part::Image(_) => {}
        }
    }
}

/// Returns whether an opaque part was created by this API and can be sent back unchanged. Other providers use different
/// formats.
fn is_own_part(opaque: &Value) -> bool {
    let has = |field: &str| opaque.get(field).is_some();
    opaque.get("thoughtSignature").is_some_and(Value::is_string) || has("executableCode") || has("codeExecutionResult")
}

fn write_piece(out: &mut Vec<u8>, piece: &RequestPart<'_>) {
    separate(out);
    write_json(out, piece);
}

fn write_call(out: &mut Vec<u8>, call: &ToolCall, thought_signature: Option<&str>) {
    let nothing = Map::new();
    let args = match &call.arguments {
        CallArguments::Object(map) => map,
        // The API accepts only objects; the result describes the error.
        CallArguments::Malformed(_) => &nothing,
    };
    let function_call = Some(Call { id: provider_id(call.tool_call_id.as_str()), name: fit(&call.tool_name), args });
    write_piece(out, &RequestPart { function_call, thought_signature, ..RequestPart::EMPTY });
}

fn write_result(out: &mut Vec<u8>, after: &mut Vec<u8>, result: &ToolResult, request: &ModelRequest, version: Version) {
    let (text, shown) = images::sent_content(result, request);
    let response = match result.status {
        ToolStatus::Succeeded => FunctionOutput::Output(&text),
        ToolStatus::Failed | ToolStatus::Denied => FunctionOutput::Error(&text),
    };
    let images = shown.into_iter().map(|(mime_type, data)| {
        let data = Data { mime_type, data };
        RequestPart { inline_data: Some(data), ..RequestPart::EMPTY }
    });
    // If the model accepts images in results, images go there. Otherwise, they follow all results.
    let (inside, behind): (Vec<_>, Vec<_>) = images.partition(|_| version.is_third());
    let id = provider_id(result.tool_call_id.as_str());
    let response = Response { id, name: fit(&result.tool_name), response, parts: inside };
    write_piece(out, &RequestPart { function_response: Some(response), ..RequestPart::EMPTY });
    for image in &behind {
        write_piece(after, image);
    }
}

/// Returns the call ID if the provider assigned it. Generated IDs are not sent.
fn provider_id(id: &str) -> Option<&str> {
    (!id.starts_with(GENERATED_ID_PREFIX)).then_some(id)
}

/// Returns a valid form of a function name, because a model may have called a function with an invalid name.
fn fit(name: &str) -> Cow<'_, str> {
    const MAX_LEN: usize = 64;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    if name.len() <= MAX_LEN && name.starts_with(begins) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mut fit: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(MAX_LEN).collect();
    if !fit.starts_with(begins) {
        fit.insert(0, '_');
        fit.truncate(MAX_LEN);
    }
    Cow::Owned(fit)
}
