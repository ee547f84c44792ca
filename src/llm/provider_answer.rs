//! Web searches performed by a provider: the text of the request, and the response in a form that is common to all
//! APIs.

use crate::ports::{SearchRequest, SearchResult};
use crate::protocol::Usage;
use serde_json::Value;

/// Maximum number of output tokens in the response.
pub(super) const OUTPUT_TOKENS: u64 = 4096;

/// Content of a web search response.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ProviderAnswer {
    pub pages: Vec<SearchResult>,
    pub summary: String,
    /// Queries that the provider sent to its search engine.
    pub queries: Vec<String>,
    pub usage: Usage,
    /// Number of searches that the provider performed.
    pub searches: u64,
    /// Reason given by the provider if the search failed.
    pub error: Option<String>,
}

impl ProviderAnswer {
    /// Adds a page. If its URL is already listed, only information that is still missing is added.
    pub(super) fn add(&mut self, page: SearchResult) {
        let Some(known) = self.pages.iter_mut().find(|known| known.url == page.url) else { return self.pages.push(page) };
        if known.title.is_empty() {
            known.title = page.title;
        }
        if !page.excerpt.is_empty() && !known.excerpt.contains(&page.excerpt) {
            let gap = if known.excerpt.is_empty() { "" } else { " … " };
            known.excerpt = format!("{}{gap}{}", known.excerpt, page.excerpt);
        }
        known.date = known.date.take().or(page.date);
    }
}

/// Returns the prompt that requests a search.
pub(super) fn instruction(request: &SearchRequest) -> String {
    format!(
        "Search the web once, for exactly this query, without changing it:\n\n{}\n\nThen list up to {} relevant pages, each with \
         its address and one or two sentences about its relevance to the query. Do not answer from memory.",
        request.query, request.count
    )
}

/// Returns the prompt that requests a search restricted to certain domains, for APIs that cannot filter by domain.
pub(super) fn instruction_with_domains(request: &SearchRequest) -> String {
    match &request.domains[..] {
        [] => instruction(request),
        domains => format!("{}\n\nUse only pages on {}.", instruction(request), domains.join(", ")),
    }
}

/// Returns the text in a field of a response, or an empty string if the field is missing.
pub(super) fn text_at(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the objects in a list field of a response. Empty if the field is missing.
pub(super) fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}
