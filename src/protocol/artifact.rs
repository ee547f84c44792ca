//! Artifacts: what is kept whole beside a thread that only has a part of it.

use serde::{Deserialize, Serialize};

/// What such a name starts with.
pub const ARTIFACT_SCHEME: &str = "artifact:";

/// What an artifact is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// All that a tool told: what a command printed, the body of an answer.
    ToolOutput,
    /// A unified diff.
    FileDiff,
    Image,
    /// A file that the model handed to the person.
    File,
}

/// Something that is kept. The same content has the same URI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// `artifact:` and the start of the hash of its content; ReadFile and Grep take it as a path.
    pub uri: String,
    pub kind: ArtifactKind,
    /// For people: `output of cargo test`.
    pub name: String,
    /// `text/plain`, `text/x-diff`, `image/png`.
    pub content_type: String,
    pub bytes: u64,
}

/// An image of a result. The thread has its name; its content is an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    pub uri: String,
    /// `image/png`.
    pub media_type: String,
    /// In pixels.
    pub width: u32,
    pub height: u32,
    pub bytes: u64,
}
