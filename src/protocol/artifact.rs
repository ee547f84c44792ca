//! Artifacts: full content that is stored outside a thread when the thread shows only part of it.

use serde::{Deserialize, Serialize};

/// Prefix of an artifact URI.
pub const ARTIFACT_SCHEME: &str = "artifact:";

/// Kind of content stored in an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// Complete tool output, such as the output of a command or the body of an HTTP response.
    ToolOutput,
    /// A unified diff.
    FileDiff,
    Image,
    /// File that the model sent to the user.
    File,
}

/// Stored artifact. Identical content has the same URI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// `artifact:` followed by the start of the content hash. ReadFile and Grep accept it as a path.
    pub uri: String,
    pub kind: ArtifactKind,
    /// Display name, such as `output of cargo test`.
    pub name: String,
    /// Media type, such as `text/plain`, `text/x-diff` or `image/png`.
    pub content_type: String,
    pub bytes: u64,
}

/// Image in a tool result. The thread stores only its name; the image data is an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    pub uri: String,
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// Width in pixels.
    pub width: u32,
    pub height: u32,
    pub bytes: u64,
}
