//! The SearXNG API: `/search` with JSON results, which the instance's administrator must enable.

use super::service_request::{ServiceRequest, readable_items, with_operators, with_parameters};
use crate::ports::{SearchRequest, SearchResult};
use serde::Deserialize;

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
    #[serde(default, rename = "publishedDate")]
    published: Option<String>,
}

pub(super) fn request(request: &SearchRequest) -> ServiceRequest {
    let path = with_parameters("/search", &[("q", &with_operators(request)), ("format", "json")]);
    ServiceRequest { path, headers: Vec::new(), body: None }
}

pub(super) fn pages(body: &[u8]) -> Result<Vec<SearchResult>, serde_json::Error> {
    let response: Response = serde_json::from_slice(body)?;
    let page = |item: Item| SearchResult {
        title: item.title.unwrap_or_default(),
        url: item.url,
        excerpt: item.content.unwrap_or_default(),
        date: item.published,
    };
    Ok(response.results.into_iter().map(page).collect())
}
