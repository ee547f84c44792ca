//! Responses API requests, which are assembled from the items of individual messages. The provider does not store them.

use super::history::{HistoryWriter, IDS};
use super::unsupported::{Extra, MissingFeatures};
use crate::llm::json::{separate, write_json};
use crate::llm::thread::{Fragment, ThreadCache, WireSettings};
use crate::ports::ModelRequest;
use crate::protocol::{Effort, ToolDefinition};
use serde::Serialize;
use serde_json::{Value, json};

/// Smallest output limit that the API accepts, in tokens.
const MIN_OUTPUT_TOKENS: u64 = 16;

#[derive(Serialize)]
struct ResponsesTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

/// Returns the complete request body.
pub(in crate::llm) fn body(model: &str, lacks: &MissingFeatures, request: &ModelRequest, thread: &mut ThreadCache) -> Vec<u8> {
    let history = HistoryWriter { request, with_kept: !lacks.has(Extra::Kept), with_ids: !lacks.has(Extra::ItemIds) };
    let form = WireSettings { ids: IDS, version: 0 };
    let fragments = thread.update_as(form, request, |message, answer, _, out| history.write(message, answer, out));
    let size: usize = fragments.iter().map(|fragment| fragment.json.len() + 1).sum();
    let mut out = Vec::with_capacity(size + request.system.len() + 32 * 1024);
    out.extend_from_slice(br#"{"model":"#);
    write_json(&mut out, model);
    out.extend_from_slice(br#","stream":true,"store":false"#);
    if seals_thinking(model) && !lacks.has(Extra::Sealed) {
        out.extend_from_slice(br#","include":["reasoning.encrypted_content"]"#);
    }
    if !lacks.has(Extra::Limit) {
        out.extend_from_slice(br#","max_output_tokens":"#);
        write_json(&mut out, &request.max_output_tokens.max(MIN_OUTPUT_TOKENS));
    }
    if let Some(effort) = request.effort.filter(|_| !lacks.has(Extra::Effort)) {
        let effort = effort_word(model, effort);
        let reasoning =
            if lacks.has(Extra::Summary) { json!({"effort": effort}) } else { json!({"effort": effort, "summary": "auto"}) };
        out.extend_from_slice(br#","reasoning":"#);
        write_json(&mut out, &reasoning);
    }
    if let Some(key) = cache_key(request).filter(|_| !lacks.has(Extra::CacheKey)) {
        out.extend_from_slice(br#","prompt_cache_key":"#);
        write_json(&mut out, &key);
    }
    write_tools(&mut out, &request.tools, !lacks.has(Extra::Parallel));
    if !request.system.trim().is_empty() {
        out.extend_from_slice(br#","instructions":"#);
        write_json(&mut out, &*request.system);
    }
    out.extend_from_slice(br#","input":["#);
    write_input(&mut out, fragments);
    out.extend_from_slice(b"]}");
    out
}

/// Writes the input items. Adjacent user messages are merged, because not all servers accept several in a row.
fn write_input(out: &mut Vec<u8>, fragments: &[Fragment]) {
    const USER: &[u8] = br#"{"type":"message","role":"user","content":["#;
    let mut ends_said = false;
    for fragment in fragments.iter().filter(|fragment| !fragment.json.is_empty()) {
        if let Some(more) = fragment.json.strip_prefix(USER).filter(|_| ends_said) {
            // Drop the closing brackets of the list and the message.
            out.truncate(out.len() - 2);
            separate(out);
            out.extend_from_slice(more);
        } else {
            separate(out);
            out.extend_from_slice(&fragment.json);
        }
        // Text in JSON has no unescaped quotes, so the marker is unambiguous. The user's text is at the end of a
        // message.
        let said_at = fragment.split(|json| memchr::memmem::find(json, USER).unwrap_or(json.len()));
        ends_said = said_at < fragment.json.len();
    }
}

fn write_tools(out: &mut Vec<u8>, tools: &[ToolDefinition], parallel: bool) {
    if tools.is_empty() {
        return;
    }
    if parallel {
        out.extend_from_slice(br#","parallel_tool_calls":true"#);
    }
    out.extend_from_slice(br#","tools":["#);
    for tool in tools {
        separate(out);
        let ToolDefinition { tool_name: name, description, input_schema: parameters } = tool;
        write_json(out, &ResponsesTool { kind: "function", name, description, parameters, strict: false });
    }
    out.push(b']');
}

/// Returns the cache key, which makes the provider route requests with the same beginning to the same machine.
fn cache_key(request: &ModelRequest) -> Option<String> {
    let first = request.messages.first()?;
    let beginning = format!("{} {} {}", first.task_id, first.message_id, first.timestamp);
    Some(format!("aye-{}", &blake3::hash(beginning.as_bytes()).to_hex()[..32]))
}

/// Returns the model name in lower case and without the prefixes that gateways add.
fn bare_model_name(model: &str) -> String {
    model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase()
}

/// Returns whether the model may use reasoning, in which case its encrypted reasoning can be requested. Older models
/// reject such requests.
fn seals_thinking(model: &str) -> bool {
    let name = bare_model_name(model);
    let before = ["gpt-3", "gpt-4", "gpt3", "gpt4", "chatgpt", "gpt-35"];
    !before.iter().any(|family| name.contains(family)) && !name.contains("-chat")
}

/// Returns the value that represents an effort for a model. If the model is not in the catalogue, the lowest value that
/// it supports is determined by its name.
fn effort_word(model: &str, effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal | Effort::Low | Effort::Medium | Effort::High | Effort::Xhigh | Effort::Max => effort.as_str(),
        Effort::Off => {
            let name = bare_model_name(model);
            let always = ["o1", "o3", "o4", "gpt-oss", "grok"].iter().any(|family| name.starts_with(family));
            if always || name.contains("codex") {
                "low"
            } else if name == "gpt-5" || name.starts_with("gpt-5-") {
                "minimal"
            } else {
                "none"
            }
        }
    }
}
