//! Responses API: URL and request headers.

mod answer;
mod calls;
mod history;
mod item;
mod names;
mod passthrough;
mod request;
mod types;
mod unsupported;
pub(super) mod web_search;

pub(super) use answer::ResponsesAssembler;
pub(super) use request::body;
pub(super) use unsupported::MissingFeatures;

pub(super) const PATH: &str = "/responses";

pub(super) fn headers(key: Option<String>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
}

#[cfg(test)]
mod tests;
