//! Web search in the Responses API, which is a hosted tool that a response may call only once.

use super::types::parse_usage;
use crate::llm::provider_answer::{OUTPUT_TOKENS, ProviderAnswer, instruction, items, text_at};
use crate::ports::{SearchRequest, SearchResult};
use crate::protocol::cut_position_after;
use serde_json::{Value, json};

/// Maximum length of a cited passage in bytes.
const PASSAGE_BYTES: usize = 400;

pub(in crate::llm) fn body(model: &str, request: &SearchRequest) -> Vec<u8> {
    let mut tool = json!({"type": "web_search"});
    if !request.domains.is_empty() {
        tool["filters"] = json!({"allowed_domains": request.domains});
    }
    let body = json!({
        "model": model,
        "store": false,
        "max_output_tokens": OUTPUT_TOKENS,
        "max_tool_calls": 1,
        "tool_choice": "required",
        "tools": [tool],
        "include": ["web_search_call.action.sources"],
        "input": instruction(request),
    });
    body.to_string().into_bytes()
}

/// Parses a response. Returns `None` if it is not a Responses API response.
pub(in crate::llm) fn read(response: &Value) -> Option<ProviderAnswer> {
    let mut answer = ProviderAnswer::default();
    response.get("output")?.as_array()?;
    for item in items(response, "output") {
        match item.get("type").and_then(Value::as_str) {
            Some("web_search_call") => {
                answer.searches += 1;
                let Some(action) = item.get("action") else { continue };
                answer.queries.extend(action.get("query").and_then(Value::as_str).map(str::to_owned));
                for source in items(action, "sources") {
                    answer.add(SearchResult { url: text_at(source, "url"), ..SearchResult::default() });
                }
            }
            Some("message") => {
                for part in items(item, "content") {
                    let text = text_at(part, "text");
                    for cited in items(part, "annotations") {
                        let excerpt = passage_before(&text, cited.get("start_index").and_then(Value::as_u64));
                        let (url, title) = (text_at(cited, "url"), text_at(cited, "title"));
                        answer.add(SearchResult { title, url, excerpt, date: None });
                    }
                    answer.summary.push_str(&text);
                }
            }
            _ => {}
        }
    }
    let usage = response.get("usage").and_then(|usage| serde_json::value::to_raw_value(usage).ok());
    answer.usage = usage.and_then(|usage| parse_usage(&usage)).unwrap_or_default();
    let error = response.pointer("/error/message").and_then(Value::as_str);
    answer.error = error.map(str::to_owned);
    Some(answer)
}

/// Returns the line of text that precedes a citation, which starts at this character.
fn passage_before(text: &str, start: Option<u64>) -> String {
    let Some(start) = start.and_then(|start| usize::try_from(start).ok()) else { return String::new() };
    let before: String = text.chars().take(start).collect();
    let line = before.rsplit('\n').next().unwrap_or_default().trim_end_matches(['(', '[', ' ']);
    line[cut_position_after(line, line.len().saturating_sub(PASSAGE_BYTES))..].to_owned()
}
