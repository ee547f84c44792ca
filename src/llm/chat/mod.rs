//! Chat Completions API: URL and request headers.

mod answer;
mod calls;
mod request;
mod types;

use super::error::ErrorContext;

pub(super) use answer::ChatAssembler;
pub(super) use request::body;

pub(super) const PATH: &str = "/chat/completions";

pub(super) fn headers(key: Option<String>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
}

/// Returns whether an error message says that the model requires the Responses API.
pub(super) fn requires_responses_api(refusal: &str) -> bool {
    refusal.contains("v1/responses")
}

/// Returns the hint for an error caused by a model that requires the Responses API.
pub(super) fn responses_api_hint(speaker: &ErrorContext) -> String {
    let ErrorContext { provider, model, .. } = speaker;
    if provider == "openai-chat" {
        return format!("choose the model `openai/{model}`, which uses the Responses API");
    }
    format!("set `providers.{provider}.api = \"openai-responses\"` in config.toml")
}

#[cfg(test)]
mod tests;
