//! Requests to a search service, and the queries in them.

use crate::ports::SearchRequest;
use crate::sys::http::Headers;
use url::form_urlencoded::Serializer;

/// Request to a service.
pub(super) struct ServiceRequest {
    /// Path and query, below the base URL.
    pub path: String,
    pub headers: Headers,
    /// Body as JSON; `None` for GET.
    pub body: Option<Vec<u8>>,
}

/// Returns a query with its domains as search operators, for services that have no parameter for domains.
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

/// Returns a path with these parameters.
pub(super) fn with_parameters(path: &str, parameters: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("{path}?{query}")
}
