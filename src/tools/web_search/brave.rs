//! The Brave Search API: `/res/v1/web/search`.

use super::service_request::{ServiceRequest, readable_items, with_operators, with_parameters};
use crate::ports::{SearchRequest, SearchResult};
use crate::tools::http::readable::{Form, readable};
use serde::Deserialize;

#[derive(Deserialize)]
struct Response {
    /// Results, absent if there are none.
    #[serde(default)]
    web: Option<Web>,
    /// Kind of response, which is `search`.
    #[serde(rename = "type")]
    _kind: String,
}

#[derive(Deserialize)]
struct Web {
    #[serde(deserialize_with = "readable_items")]
    results: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    page_age: Option<String>,
    #[serde(default)]
    age: Option<String>,
}

pub(super) fn request(request: &SearchRequest, key: &str) -> ServiceRequest {
    let count = request.count.to_string();
    let parameters = [("q", &*with_operators(request)), ("count", &count), ("text_decorations", "false")];
    let path = with_parameters("/res/v1/web/search", &parameters);
    ServiceRequest { path, headers: vec![("x-subscription-token".into(), key.to_owned())], body: None }
}

pub(super) fn pages(body: &[u8]) -> Result<Vec<SearchResult>, serde_json::Error> {
    let response: Response = serde_json::from_slice(body)?;
    // Titles and descriptions are HTML.
    let text = |html: Option<String>, url: &str| readable(&html.unwrap_or_default(), url, Form::Text);
    let page = |item: Item| SearchResult {
        title: text(item.title, &item.url),
        excerpt: text(item.description, &item.url),
        date: item.page_age.or(item.age),
        url: item.url,
    };
    Ok(response.web.into_iter().flat_map(|web| web.results).map(page).collect())
}
