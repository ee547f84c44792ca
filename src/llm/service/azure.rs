//! Azure OpenAI: the v1 API, and the older API whose URLs contain deployments and an API version.

use super::segment;
use crate::llm::{Api, chat, responses};

const OPENAI: &str = "/openai";
const V1: &str = "/openai/v1";

/// Returns whether an API version is a date, such as `2025-04-01-preview`. Versions of the v1 API are words, such as
/// `preview`.
fn is_dated(version: &str) -> bool {
    version.starts_with(|letter: char| letter.is_ascii_digit())
}

/// Returns the part of the path that the base URL lacks.
fn root(base: &str, is_dated: bool) -> &'static str {
    match (is_dated, base.ends_with(V1), base.ends_with(OPENAI)) {
        (_, true, _) | (true, _, true) => "",
        (false, _, true) => "/v1",
        (true, ..) => OPENAI,
        (false, ..) => V1,
    }
}

fn query(version: Option<&str>) -> String {
    version.map(|version| format!("?api-version={}", segment(version))).unwrap_or_default()
}

pub(super) fn path(api: Api, base: &str, model: &str, version: Option<&str>) -> String {
    let is_dated = version.is_some_and(is_dated);
    let path = match api {
        Api::OpenAiChat if is_dated => format!("/deployments/{}{}", segment(model), chat::PATH),
        Api::OpenAiChat => chat::PATH.to_owned(),
        Api::OpenAiResponses | Api::Anthropic | Api::Gemini => responses::PATH.to_owned(),
    };
    format!("{}{path}{}", root(base, is_dated), query(version))
}

/// Returns the path of the list of all models in the region. A request to it shows whether the key is accepted.
pub(super) fn list_path(base: &str, version: Option<&str>) -> String {
    format!("{}/models{}", root(base, version.is_some_and(is_dated)), query(version))
}

/// Returns the authentication header for an API key, or for a Microsoft Entra ID token, which is a JSON Web Token.
pub(super) fn headers(key: Option<String>) -> Vec<(&'static str, String)> {
    let is_token = |key: &String| key.starts_with("eyJ") && key.matches('.').count() == 2;
    match key {
        Some(key) if is_token(&key) => vec![("authorization", format!("Bearer {key}"))],
        Some(key) => vec![("api-key", key)],
        None => Vec::new(),
    }
}
