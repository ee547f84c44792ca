//! Gemini API: URL and request headers.

mod answer;
mod request;
mod schema;
mod types;
mod version;
pub(super) mod web_search;

pub(super) use answer::GeminiAssembler;
pub(super) use request::body;

/// API versions that can appear in a URL. The base URL may already end with one of them.
const VERSIONS: [&str; 3] = ["/v1beta", "/v1alpha", "/v1"];

/// Returns the API version to append to the base URL. Empty if it already ends with one.
pub(super) fn version_below(base: &str) -> &'static str {
    if VERSIONS.iter().any(|version| base.ends_with(version)) { "" } else { VERSIONS[0] }
}

/// Returns the path, relative to the base URL, to which requests for a model are sent.
pub(super) fn path(base: &str, model: &str) -> String {
    model_path(base, model) + ":streamGenerateContent?alt=sse"
}

/// Returns the path of a model, relative to the base URL.
fn model_path(base: &str, model: &str) -> String {
    let version = version_below(base);
    // The name may already contain the collection.
    let kind = if model.starts_with("models/") || model.starts_with("tunedModels/") { "" } else { "models/" };
    let mut path = format!("{version}/{kind}");
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => path.push(char::from(byte)),
            other => {
                use std::fmt::Write;
                let _ = write!(path, "%{other:02X}");
            }
        }
    }
    path
}

pub(super) fn headers(key: Option<String>) -> Vec<(&'static str, String)> {
    key.map(|key| ("x-goog-api-key", key)).into_iter().collect()
}

#[cfg(test)]
mod tests;
