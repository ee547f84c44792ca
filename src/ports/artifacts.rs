//! Artifact storage: stores long output in full.

use super::BoxFuture;
use crate::protocol::{Artifact, ArtifactKind};
use std::path::{Path, PathBuf};

/// Maximum number of bytes stored for one artifact. A caller with more data writes the part that fits and reports the
/// rest as omitted.
pub(crate) const ARTIFACT_BYTES: u64 = 64 << 20;

/// Description of an artifact to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewArtifact {
    pub kind: ArtifactKind,
    /// Display name: `output of cargo test`.
    pub name: String,
    /// Media type: `text/plain`, `text/x-diff`, `image/png`.
    pub content_type: String,
}

/// Stored artifact and the read-only file that contains it.
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

/// Writer for one artifact. If it is dropped before `finish`, nothing is stored.
pub(crate) trait ArtifactWriter: Send {
    /// Writes bytes. May block on the disk.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError>;
    fn finish(self: Box<Self>) -> Result<Artifact, ArtifactError>;
}

/// Content-addressed storage with a quota. All methods may block on the disk.
pub(crate) trait Artifacts: Send + Sync {
    fn begin(&self, new: NewArtifact) -> Result<Box<dyn ArtifactWriter>, ArtifactError>;
    /// Finds an artifact by its URI. The error distinguishes artifacts that never existed from
    /// evicted ones.
    fn find(&self, uri: &str) -> Result<StoredArtifact, ArtifactError>;
    /// Returns the URI of the artifact whose content is at this path, if any.
    fn uri_of(&self, _path: &Path) -> Option<String> {
        None
    }
    /// Reads a whole artifact; an error if it is longer than the limit.
    fn content(&self, uri: &str, max_bytes: u64) -> Result<Vec<u8>, ArtifactError> {
        let message = format!("cannot read `{uri}` here (limit {max_bytes} bytes)");
        Err(ArtifactError { message })
    }
    /// Lists the artifacts of this session, oldest first; empty if the session is unknown.
    fn list(&self) -> Result<Vec<Artifact>, ArtifactError> {
        Ok(Vec::new())
    }
}

/// Storage for copies of artifacts in an object store.
pub(crate) trait ArtifactUploads: Send + Sync {
    /// Uploads artifacts. Returns the URLs of the uploads that completed in time; the others continue in the
    /// background.
    fn upload(&self, uris: Vec<String>) -> BoxFuture<'_, Vec<String>>;
}
