//! The Tavily API: `/search`.

use super::service_request::{ServiceRequest, readable_items};
use crate::ports::{SearchRequest, SearchResult};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Response {
    #[serde(deserialize_with = "readable_items")]
    results: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    published_date: Option<String>,
}

pub(super) fn request(request: &SearchRequest, key: &str) -> ServiceRequest {
    let body = json!({
        "query": request.query,
        "max_results": request.count,
        "search_depth": "basic",
        "include_domains": request.domains,
    });
    let headers = vec![("authorization".into(), format!("Bearer {key}"))];
    ServiceRequest { path: "/search".to_owned(), headers, body: Some(body.to_string().into_bytes()) }
}

pub(super) fn pages(body: &[u8]) -> Result<Vec<SearchResult>, serde_json::Error> {
    let response: Response = serde_json::from_slice(body)?;
    let page = |item: Item| SearchResult {
        title: item.title.unwrap_or_default(),
        url: item.url,
        excerpt: item.content.unwrap_or_default(),
        date: item.published_date,
    };
    Ok(response.results.into_iter().map(page).collect())
}
