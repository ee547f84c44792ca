//! Messages API: URL and request headers.

mod answer;
mod request;
mod thinking;
mod types;
pub(super) mod web_search;

pub(super) use answer::MessagesAssembler;
pub(super) use request::body;
pub(super) use thinking::beta;

pub(super) const PATH: &str = "/v1/messages";
const VERSION: &str = "2023-06-01";

pub(super) fn headers(key: Option<String>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    headers.extend(key.map(|key| ("x-api-key", key)));
    headers
}

#[cfg(test)]
mod tests;
