//! Google Search as a Gemini API tool. The API offers no way to limit the number of queries or to filter by domain.

use super::model_path;
use super::types::GeminiUsage;
use crate::llm::provider_answer::{OUTPUT_TOKENS, ProviderAnswer, instruction_with_domains, items, text_at};
use crate::ports::{SearchRequest, SearchResult};
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns the path for a request without streaming, relative to the base URL.
pub(in crate::llm) fn path(base: &str, model: &str) -> String {
    model_path(base, model) + ":generateContent"
}

pub(in crate::llm) fn body(request: &SearchRequest) -> Vec<u8> {
    let body = json!({
        "contents": [{"role": "user", "parts": [{"text": instruction_with_domains(request)}]}],
        "tools": [{"google_search": {}}],
        "generationConfig": {"maxOutputTokens": OUTPUT_TOKENS},
    });
    body.to_string().into_bytes()
}

/// Parses a response. Returns `None` if it is not a Gemini API response.
pub(in crate::llm) fn read(response: &Value) -> Option<ProviderAnswer> {
    let candidate = response.get("candidates")?.as_array()?.first()?;
    let mut answer = ProviderAnswer::default();
    if let Some(content) = candidate.get("content") {
        let is_thought = |part: &&Value| part.get("thought").and_then(Value::as_bool) == Some(true);
        for part in items(content, "parts").filter(|part| !is_thought(part)) {
            answer.summary.push_str(&text_at(part, "text"));
        }
    }
    if let Some(grounding) = candidate.get("groundingMetadata") {
        answer.queries.extend(items(grounding, "webSearchQueries").filter_map(Value::as_str).map(str::to_owned));
        answer.searches = answer.queries.len() as u64;
        let web: Vec<Option<&Value>> = items(grounding, "groundingChunks").map(|chunk| chunk.get("web")).collect();
        for page in web.iter().flatten() {
            answer.add(SearchResult { title: text_at(page, "title"), url: text_at(page, "uri"), ..SearchResult::default() });
        }
        for support in items(grounding, "groundingSupports") {
            let excerpt = support.get("segment").map(|segment| text_at(segment, "text")).unwrap_or_default();
            let index = items(support, "groundingChunkIndices").next().and_then(Value::as_u64);
            let page = index.and_then(|index| *web.get(usize::try_from(index).ok()?)?);
            if let Some(page) = page {
                answer.add(SearchResult { title: text_at(page, "title"), url: text_at(page, "uri"), excerpt, date: None });
            }
        }
    }
    let usage = response.get("usageMetadata").and_then(|usage| GeminiUsage::deserialize(usage).ok());
    answer.usage = usage.map(|usage| usage.total()).unwrap_or_default();
    Some(answer)
}
