//! Artifact storage, which stores long output in full.

use super::BoxFuture;
use crate::protocol::{Artifact, ArtifactKind};
use std::path::{Path, PathBuf};

/// Maximum size of an artifact, in bytes. A caller with more data stores as much as fits and reports the remaining
/// bytes as omitted.
pub(crate) const ARTIFACT_BYTES: u64 = 64 << 20;

/// Description of an artifact to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewArtifact {
    pub kind: ArtifactKind,
    /// Display name, such as `output of cargo test`.
    pub name: String,
    /// Media type, such as `text/plain`, `text/x-diff` or `image/png`.
    pub content_type: String,
}

/// Stored artifact, with the path of the read-only file that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredArtifact {
    pub artifact: Artifact,
    pub path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ArtifactError {
    pub message: String,
}

/// Writer for a single artifact. Dropping the writer before calling `finish` stores nothing.
pub(crate) trait ArtifactWriter: Send {
    /// Writes bytes to the artifact. May block on disk I/O.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError>;
    fn finish(self: Box<Self>) -> Result<Artifact, ArtifactError>;
}

/// Content-addressed artifact storage with a quota. All methods may block on disk I/O.
pub(crate) trait Artifacts: Send + Sync {
    fn begin(&self, new: NewArtifact) -> Result<Box<dyn ArtifactWriter>, ArtifactError>;
    /// Finds an artifact by its URI. The error says whether the artifact was evicted or never existed.
    fn find(&self, uri: &str) -> Result<StoredArtifact, ArtifactError>;
    /// Returns the URI of the artifact stored at this path, if any.
    fn uri_of(&self, _path: &Path) -> Option<String> {
        None
    }
    /// Reads a whole artifact. Returns an error if the artifact is larger than `max_bytes`.
    fn content(&self, uri: &str, max_bytes: u64) -> Result<Vec<u8>, ArtifactError> {
        let message = format!("cannot read `{uri}` here (limit {max_bytes} bytes)");
        Err(ArtifactError { message })
    }
    /// Lists the session's artifacts, oldest first. Returns an empty list if the session is unknown.
    fn list(&self) -> Result<Vec<Artifact>, ArtifactError> {
        Ok(Vec::new())
    }
}

/// Uploads copies of artifacts to an object store.
pub(crate) trait ArtifactUploads: Send + Sync {
    /// Uploads artifacts. Returns the URLs of the uploads that completed in time; the others continue in the
    /// background.
    fn upload(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>>;
}
