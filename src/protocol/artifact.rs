//! Artifacts: full content stored outside a thread that shows only part of it.

use serde::{Deserialize, Serialize};

/// Prefix of an artifact URI.
pub const ARTIFACT_SCHEME: &str = "artifact:";

/// Kind of content in an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// Complete output of a tool, such as the output of a command or the body of a response.
    ToolOutput,
    /// A unified diff.
    FileDiff,
    Image,
    /// File that the model provided to the user.
    File,
}

/// Stored artifact. The same content has the same URI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// `artifact:` and the start of the content hash. ReadFile and Grep accept it as a path.
    pub uri: String,
    pub kind: ArtifactKind,
    /// Display name: `output of cargo test`.
    pub name: String,
    /// Media type: `text/plain`, `text/x-diff`, `image/png`.
    pub content_type: String,
    pub bytes: u64,
}

/// Image in a tool result. The thread contains its name; its content is an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    pub uri: String,
    /// Media type: `image/png`.
    pub media_type: String,
    /// Width in pixels.
    pub width: u32,
    pub height: u32,
    pub bytes: u64,
}
