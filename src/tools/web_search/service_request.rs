//! Requests to a search service, and the search queries that they contain.

use crate::ports::SearchRequest;
use crate::sys::http::Headers;
use serde::Deserialize as _;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;
use url::form_urlencoded::Serializer;

/// A request to a search service.
pub(super) struct ServiceRequest {
    /// Path and query string, relative to the base URL.
    pub path: String,
    pub headers: Headers,
    /// Body as JSON, or `None` for a GET request.
    pub body: Option<Vec<u8>>,
}

/// Parses the results in a response and leaves out those that are malformed, unless all of them are.
pub(super) fn readable_items<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let values = Vec::<Value>::deserialize(deserializer)?;
    let count = values.len();
    let mut failure = None;
    let items: Vec<T> = values
        .into_iter()
        .filter_map(|value| serde_json::from_value(value).map_err(|error| failure = Some(error)).ok())
        .collect();
    match failure {
        Some(error) if items.is_empty() && count > 0 => Err(D::Error::custom(error)),
        _ => Ok(items),
    }
}

/// Returns the query with the requested domains as search operators, for services that have no parameter for domains.
pub(super) fn with_operators(request: &SearchRequest) -> String {
    if request.domains.is_empty() {
        return request.query.clone();
    }
    let sites: Vec<String> = request.domains.iter().map(|domain| format!("site:{domain}")).collect();
    match &sites[..] {
        [only] => format!("{} {only}", request.query),
        several => format!("{} ({})", request.query, several.join(" OR ")),
    }
}

/// Appends these parameters to a path as its query string.
pub(super) fn with_parameters(path: &str, parameters: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("{path}?{query}")
}
