//! Web searches by the provider. Each is a separate request that contains nothing but the query, which lets the user
//! approve the query first. Requests that belong to the conversation never offer the provider's search.

use super::provider_answer::ProviderAnswer;
use super::{Api, anthropic, gemini, responses};
use crate::ports::{BoxFuture, ModelError, SearchAnswer, SearchEngine, SearchRequest};
use crate::protocol::{ErrorCode, FailureKind, ModelFacts, ModelUse, ToolError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Timeout for a search, during which a model reads the pages that were found.
const TIMEOUT: Duration = Duration::from_secs(100);
/// Maximum size of a response in bytes. Most of a response consists of copies of the pages.
pub(super) const RESPONSE_BYTES: usize = 8 << 20;

/// Connection to the session's model.
pub(super) trait SearchConnection: Send + Sync {
    fn api(&self) -> Api;
    /// Returns the name that the provider uses for the model.
    fn model(&self) -> &str;
    fn address(&self) -> &str;
    /// Returns the server's host name, followed by the port if it is not the default.
    fn host(&self) -> &str;
    /// Returns the provider's name in the settings.
    fn provider(&self) -> &str;
    /// Returns whether the address is the one that belongs to the API's own provider.
    fn is_at_home(&self) -> bool;
    /// Sends a request that is not part of the conversation, and returns the complete response body.
    fn post(&self, path: String, body: Vec<u8>) -> BoxFuture<'_, Result<Vec<u8>, ModelError>>;
}

/// Web search performed by the provider of the session's model.
pub(super) struct ProviderSearch {
    inner: Arc<dyn SearchConnection>,
    facts: ModelFacts,
    name: String,
}

impl ProviderSearch {
    /// Returns the provider's web search, or `None` if its API has none.
    pub(super) fn for_connection(inner: Arc<dyn SearchConnection>, facts: ModelFacts) -> Option<Self> {
        let provider = match inner.api() {
            Api::Anthropic => "Anthropic",
            Api::OpenAiResponses => "OpenAI",
            Api::Gemini => "Google",
            Api::OpenAiChat => return None,
        };
        let name = if inner.is_at_home() { provider.to_owned() } else { inner.provider().to_owned() };
        Some(Self { inner, facts, name })
    }
}

/// Returns the price in US dollars of the searches in a request, not including tokens, according to the price lists of
/// 2026. Anthropic and OpenAI charge $10 per 1,000 searches. Google charges $14 per 1,000 queries for Gemini 3 and
/// later, and $35 per 1,000 requests for earlier models, regardless of the number of queries. Free quotas are not taken
/// into account.
fn fee_usd(api: Api, model: &str, searches: u64) -> f64 {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_charged_per_request = ["gemini-1", "gemini-2"].iter().any(|old| name.starts_with(old));
    match api {
        Api::Anthropic | Api::OpenAiResponses => 0.01 * searches as f64,
        Api::Gemini if is_charged_per_request => 0.035 * searches.min(1) as f64,
        Api::Gemini => 0.014 * searches as f64,
        Api::OpenAiChat => 0.0,
    }
}

async fn search(
    inner: Arc<dyn SearchConnection>,
    facts: ModelFacts,
    name: String,
    request: SearchRequest,
) -> Result<SearchAnswer, ToolError> {
    let (path, body) = match inner.api() {
        Api::Anthropic => (anthropic::PATH.to_owned(), anthropic::web_search::body(inner.model(), &request)),
        Api::OpenAiResponses => (responses::PATH.to_owned(), responses::web_search::body(inner.model(), &request)),
        Api::Gemini => (gemini::web_search::path(inner.address(), inner.model()), gemini::web_search::body(&request)),
        Api::OpenAiChat => return Err(search_error(format!("the {name} API has no web search"))),
    };
    let sent = tokio::time::timeout(TIMEOUT, inner.post(path, body)).await;
    let late = || {
        let message = format!("{name} did not send a complete response within {} s; retry later", TIMEOUT.as_secs());
        ToolError::new(ErrorCode::ToolExecutionTimeout, message)
    };
    let body = sent.map_err(|_| late())?.map_err(|error| model_error(&name, &error))?;
    let unreadable =
        || search_error(format!("{name} returned a response that aye cannot read; the search may have been charged"));
    let value: Value = serde_json::from_slice(&body).map_err(|_| unreadable())?;
    let read = match inner.api() {
        Api::Anthropic => anthropic::web_search::read(&value),
        Api::OpenAiResponses => responses::web_search::read(&value),
        Api::Gemini => gemini::web_search::read(&value),
        Api::OpenAiChat => None,
    };
    let ProviderAnswer { pages, summary, queries, usage, searches, error } = read.ok_or_else(unreadable)?;
    let used = ModelUse { model: facts, usage, fee_usd: fee_usd(inner.api(), inner.model(), searches) };
    let summary = match error {
        Some(error) => Some(format!("The search failed: {error}.")),
        None if searches == 0 && pages.is_empty() => {
            Some("The provider's model did not search; the following text is not from the web.\n".to_owned() + &summary)
        }
        None => Some(summary).filter(|summary| !summary.trim().is_empty()),
    };
    Ok(SearchAnswer { pages, summary, queries, used: Some(used) })
}

impl SearchEngine for ProviderSearch {
    fn name(&self) -> &str {
        &self.name
    }

    fn host(&self) -> &str {
        self.inner.host()
    }

    fn is_certain(&self) -> bool {
        self.inner.is_at_home()
    }

    fn rewrites_query(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), ToolError> {
        Ok(())
    }

    fn search(&self, request: SearchRequest) -> BoxFuture<'static, Result<SearchAnswer, ToolError>> {
        Box::pin(search(Arc::clone(&self.inner), self.facts.clone(), self.name.clone(), request))
    }
}

fn model_error(name: &str, error: &ModelError) -> ToolError {
    let failure = &error.failure;
    let hint = match failure.kind {
        FailureKind::InvalidRequest | FailureKind::NotFound => {
            "; the model may have no web search: ask the user to choose another model, or to set `search.provider`"
        }
        _ => "",
    };
    search_error(format!("{name} refused the search: {}{hint}", failure.message))
}

fn search_error(message: String) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::SearchResult;
    use serde_json::json;

    fn request(domains: &[&str]) -> SearchRequest {
        let domains = domains.iter().map(|&domain| domain.to_owned()).collect();
        SearchRequest { query: "rust async".to_owned(), domains, count: 5 }
    }

    fn sent(body: &[u8]) -> Value {
        serde_json::from_slice(body).unwrap()
    }

    #[test]
    fn search_requests_contain_only_the_query_and_allow_one_search() {
        let one = request(&["docs.rs"]);
        let anthropic = sent(&anthropic::web_search::body("m", &one));
        assert_eq!(anthropic["tools"][0]["max_uses"], 1);
        assert_eq!(anthropic["tools"][0]["allowed_domains"], json!(["docs.rs"]));
        let responses = sent(&responses::web_search::body("m", &one));
        assert_eq!((&responses["max_tool_calls"], &responses["store"]), (&json!(1), &json!(false)));
        assert_eq!(responses["tools"], json!([{"type": "web_search", "filters": {"allowed_domains": ["docs.rs"]}}]));
        let gemini = sent(&gemini::web_search::body(&one));
        assert_eq!(gemini["tools"], json!([{"google_search": {}}]));
        assert!(gemini["contents"][0]["parts"][0]["text"].as_str().unwrap().ends_with("Use only pages on docs.rs."));
        for body in [anthropic, responses, gemini] {
            assert!(body.to_string().contains("rust async"), "{body}");
        }
        let free = sent(&anthropic::web_search::body("m", &request(&[])));
        assert_eq!(free["tools"], json!([{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}]));
        assert_eq!(gemini::web_search::path("https://g.example/v1beta", "gemini-x"), "/models/gemini-x:generateContent");
    }

    #[test]
    fn pages_queries_and_usage_are_read_from_every_api() {
        let openai = json!({
            "output": [
                {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "rust async",
                    "sources": [{"type": "url", "url": "https://a.example/"}, {"type": "url", "url": "https://b.example/"}]}},
                {"type": "message", "content": [{"type": "output_text", "text": "See A (a.example).",
                    "annotations": [{"type": "url_citation", "url": "https://a.example/", "title": "A", "start_index": 6, "end_index": 17}]}]},
            ],
            "usage": {"input_tokens": 7, "output_tokens": 3},
        });
        let read = responses::web_search::read(&openai).unwrap();
        let page = |title: &str, url: &str, excerpt: &str| SearchResult {
            title: title.to_owned(),
            url: url.to_owned(),
            excerpt: excerpt.to_owned(),
            date: None,
        };
        assert_eq!(read.pages, [page("A", "https://a.example/", "See A"), page("", "https://b.example/", "")]);
        assert_eq!(
            (read.searches, read.queries, read.summary),
            (1, vec!["rust async".to_owned()], "See A (a.example).".to_owned())
        );
        assert_eq!((read.usage.input_tokens, read.usage.output_tokens), (7, 3));
        let google = json!({
            "candidates": [{
                "content": {"parts": [{"text": "hm", "thought": true}, {"text": "See A."}]},
                "groundingMetadata": {
                    "webSearchQueries": ["rust async", "rust await"],
                    "groundingChunks": [{"web": {"uri": "https://a.example/", "title": "A"}}, {"other": {}}],
                    "groundingSupports": [{"segment": {"text": "See A."}, "groundingChunkIndices": [0]}, {"groundingChunkIndices": [9]}],
                },
            }],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 1, "toolUsePromptTokenCount": 4},
        });
        let read = gemini::web_search::read(&google).unwrap();
        assert_eq!(read.pages, [page("A", "https://a.example/", "See A.")]);
        assert_eq!((read.searches, read.queries.len(), &*read.summary), (2, 2, "See A."));
        assert_eq!((read.usage.input_tokens, read.usage.output_tokens), (9, 3));
        let failed = json!({"content": [{"type": "web_search_tool_result", "content":
            {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}]});
        assert_eq!(anthropic::web_search::read(&failed).unwrap().error.as_deref(), Some("max uses exceeded"));
    }

    #[test]
    fn fees_follow_the_price_list_of_each_provider() {
        let cases = [
            (Api::Anthropic, "claude-sonnet-5", 2, 0.02),
            (Api::OpenAiResponses, "gpt-6", 1, 0.01),
            (Api::Gemini, "gemini-3.1-pro", 5, 0.07),
            (Api::Gemini, "gemini-2.5-flash", 5, 0.035),
            (Api::Gemini, "publishers/google/models/gemini-2.5-pro", 0, 0.0),
            (Api::Gemini, "gemini-flash-latest", 1, 0.014),
            (Api::OpenAiChat, "gpt-6", 3, 0.0),
        ];
        for (api, model, searches, fee) in cases {
            assert!((fee_usd(api, model, searches) - fee).abs() < 1e-9, "{model}: {}", fee_usd(api, model, searches));
        }
    }

    #[test]
    fn responses_of_other_shapes_are_rejected_without_panics() {
        for value in [json!({}), json!([]), json!({"content": 1, "output": {}, "candidates": []})] {
            assert_eq!(anthropic::web_search::read(&value), None, "{value}");
            assert_eq!(responses::web_search::read(&value), None, "{value}");
            assert_eq!(gemini::web_search::read(&value), None, "{value}");
        }
        let odd = json!({"content": [1, {"type": "text", "citations": "x"}, {"type": "web_search_tool_result", "content": 3}],
            "output": [null, {"type": "message", "content": [{"text": 1, "annotations": [{"start_index": -1}]}]}],
            "candidates": [{"groundingMetadata": {"groundingSupports": [{"groundingChunkIndices": ["a"]}]}}]});
        assert!(anthropic::web_search::read(&odd).is_some() && gemini::web_search::read(&odd).is_some());
        assert!(responses::web_search::read(&odd).is_some());
    }
}
