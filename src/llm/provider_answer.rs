//! Web searches by a provider: the request text, and the parts of the response that all APIs share.

use crate::ports::{SearchRequest, SearchResult};
use crate::protocol::Usage;
use serde_json::Value;

/// Maximum number of tokens in the response.
pub(super) const OUTPUT_TOKENS: u64 = 4096;

/// Content of a response.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ProviderAnswer {
    pub pages: Vec<SearchResult>,
    pub summary: String,
    /// Queries that were sent to the search.
    pub queries: Vec<String>,
    pub usage: Usage,
    /// Number of searches by the provider.
    pub searches: u64,
    /// Reason why the search failed, as reported by the provider.
    pub error: Option<String>,
}

impl ProviderAnswer {
    /// Adds a page, or new information about a page.
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

/// Returns the text that requests a search.
pub(super) fn instruction(request: &SearchRequest) -> String {
    format!(
        "Search the web once, for exactly this query, without changing it:\n\n{}\n\nThen list up to {} relevant pages, each with \
         its address and one or two sentences about its relevance to the query. Do not answer from memory.",
        request.query, request.count
    )
}

/// Returns the text that requests a search limited to certain domains, for APIs without a filter.
pub(super) fn instruction_with_domains(request: &SearchRequest) -> String {
    match &request.domains[..] {
        [] => instruction(request),
        domains => format!("{}\n\nUse only pages on {}.", instruction(request), domains.join(", ")),
    }
}

/// Returns the text in a field of a response; empty if it is missing.
pub(super) fn text_at(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the objects in a list field of a response; none if it is missing.
pub(super) fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}
