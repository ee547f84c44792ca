//! Amazon Bedrock: Anthropic models.

use super::segment;

/// Version of the Messages API, sent in the body.
pub(super) const VERSION: &str = "bedrock-2023-05-31";

/// Returns the path of a model, given its name or the ARN of an inference profile.
pub(super) fn path(model: &str) -> String {
    format!("/model/{}/invoke-with-response-stream", segment(model))
}
