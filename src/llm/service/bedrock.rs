//! Amazon Bedrock: Anthropic models.

use super::segment;

/// Messages API version, which is sent in the request body.
pub(super) const VERSION: &str = "bedrock-2023-05-31";

/// Returns the request path for a model, which is given by name or as the ARN of an inference profile.
pub(super) fn path(model: &str) -> String {
    format!("/model/{}/invoke-with-response-stream", segment(model))
}
