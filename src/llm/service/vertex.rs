//! Vertex AI: Gemini and Anthropic models.

use super::segment;
use crate::llm::Api;

/// Messages API version, which is sent in the request body.
pub(super) const VERSION: &str = "vertex-2023-10-16";

pub(super) fn path(api: Api, project: &str, location: &str, model: &str) -> String {
    let (publisher, method) = match api {
        Api::Anthropic => ("anthropic", "streamRawPredict"),
        Api::Gemini | Api::OpenAiChat | Api::OpenAiResponses => ("google", "streamGenerateContent?alt=sse"),
    };
    // `@` precedes the version of a model, and must not be escaped.
    let model = segment(model).replace("%40", "@");
    format!("/v1/projects/{}/locations/{}/publishers/{publisher}/models/{model}:{method}", segment(project), segment(location))
}
