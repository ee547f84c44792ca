//! Artifact storage: the port that stores long output whole.

use crate::protocol::{Artifact, ArtifactKind};
use std::path::{Path, PathBuf};

/// The most that is kept of one content. Who has more writes what fits, and says so.
pub const ARTIFACT_BYTES: u64 = 64 << 20;

/// What is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewArtifact {
    pub kind: ArtifactKind,
    /// For people: `output of cargo test`.
    pub name: String,
    /// `text/plain`, `text/x-diff`, `image/png`.
    pub content_type: String,
}

/// One that is kept, and where its content lies, to be read only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptArtifact {
    pub artifact: Artifact,
    pub path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ArtifactError {
    pub message: String,
}

/// A content that is being written. Dropped before it is finished, nothing of it is kept.
pub trait ArtifactWriter: Send {
    /// Waits for the disk, if it must.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError>;
    fn finish(self: Box<Self>) -> Result<Artifact, ArtifactError>;
}

/// Keeps contents by their hash, within a quota. All of it waits for the disk, if it must.
pub trait Artifacts: Send + Sync {
    fn begin(&self, new: NewArtifact) -> Result<Box<dyn ArtifactWriter>, ArtifactError>;
    /// By its URI; an error says whether it never was or was given up for newer ones.
    fn find(&self, uri: &str) -> Result<KeptArtifact, ArtifactError>;
    /// The URI of the content that lies at this path, where one does.
    fn uri_of(&self, _path: &Path) -> Option<String> {
        None
    }
    /// The same, read whole; an error where it is longer than this.
    fn content(&self, uri: &str, most_bytes: u64) -> Result<Vec<u8>, ArtifactError> {
        let message = format!("cannot read `{uri}` here (limit {most_bytes} bytes)");
        Err(ArtifactError { message })
    }
    /// Those of this session, the oldest first; none where nobody knows whose they are.
    fn list(&self) -> Result<Vec<Artifact>, ArtifactError> {
        Ok(Vec::new())
    }
}
