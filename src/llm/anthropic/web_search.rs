//! Web search in the Messages API, which is a server tool that a response may use only once.

use super::types::MessagesUsage;
use crate::llm::provider_answer::{OUTPUT_TOKENS, ProviderAnswer, instruction, items, text_at};
use crate::ports::{SearchRequest, SearchResult};
use serde_json::{Value, json};

pub(in crate::llm) fn body(model: &str, request: &SearchRequest) -> Vec<u8> {
    let mut tool = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 1});
    if !request.domains.is_empty() {
        tool["allowed_domains"] = json!(request.domains);
    }
    let messages = json!([{"role": "user", "content": instruction(request)}]);
    json!({"model": model, "max_tokens": OUTPUT_TOKENS, "messages": messages, "tools": [tool]}).to_string().into_bytes()
}

/// Parses a response. Returns `None` if it is not a Messages API response.
pub(in crate::llm) fn read(response: &Value) -> Option<ProviderAnswer> {
    let mut answer = ProviderAnswer::default();
    response.get("content")?.as_array()?;
    for block in items(response, "content") {
        match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                answer.summary.push_str(&text_at(block, "text"));
                for cited in items(block, "citations") {
                    let (url, title) = (text_at(cited, "url"), text_at(cited, "title"));
                    answer.add(SearchResult { title, url, excerpt: text_at(cited, "cited_text"), date: None });
                }
            }
            Some("server_tool_use") => {
                answer.queries.extend(block.pointer("/input/query").and_then(Value::as_str).map(str::to_owned));
            }
            Some("web_search_tool_result") => {
                for found in items(block, "content") {
                    let date = found.get("page_age").and_then(Value::as_str).map(str::to_owned);
                    let (url, title) = (text_at(found, "url"), text_at(found, "title"));
                    answer.add(SearchResult { title, url, excerpt: String::new(), date });
                }
                let error = block.pointer("/content/error_code").and_then(Value::as_str);
                answer.error = answer.error.take().or_else(|| error.map(|code| code.replace('_', " ")));
            }
            _ => {}
        }
    }
    let mut usage = MessagesUsage::default();
    if let Some(told) = response.get("usage") {
        usage.merge(told);
        answer.searches = told.pointer("/server_tool_use/web_search_requests").and_then(Value::as_u64).unwrap_or(0);
    }
    answer.usage = usage.total().unwrap_or_default();
    Some(answer)
}
