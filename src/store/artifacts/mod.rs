//! Content-addressed artifacts, with their owners and times of last use. Old artifacts are evicted to make room for new
//! ones.

mod contents;
mod index;
mod retention;
#[cfg(test)]
mod tests;

use super::index_file::IndexError;
use super::lock_ignoring_poison;
use crate::ports::{ARTIFACT_BYTES, ArtifactError, ArtifactWriter, Artifacts, NewArtifact, StoredArtifact};
use crate::protocol::{Artifact, SessionId};
use index::Index;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::NamedTempFile;

/// Name of the artifact directory inside the data directory.
const DIRECTORY: &str = "artifacts";

/// Artifact storage limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArtifactLimits {
    /// Maximum size of a single content in bytes.
    pub one_bytes: u64,
    /// Maximum total size in bytes. Once it is exceeded, the least recently used contents are evicted.
    pub all_bytes: u64,
    pub count: u64,
}

const LIMITS: ArtifactLimits = ArtifactLimits { one_bytes: ARTIFACT_BYTES, all_bytes: 1 << 30, count: 10_000 };

/// Artifact store in a data directory, opened on first use.
pub(crate) struct ArtifactStore {
    inner: Arc<Inner>,
}

struct Inner {
    directory: PathBuf,
    limits: ArtifactLimits,
    /// Session that owns new artifacts.
    session: String,
    index: Mutex<Option<Index>>,
}

impl ArtifactStore {
    pub(crate) fn new(data_dir: &Path, session: Option<&SessionId>) -> Self {
        Self::with_limits(data_dir, session, LIMITS)
    }

    /// Returns the artifact store with a different limit on its total size.
    pub(crate) fn with_budget(self, all_bytes: u64) -> Self {
        let (directory, session) = (self.inner.directory.clone(), self.inner.session.clone());
        let limits = ArtifactLimits { all_bytes, ..self.inner.limits };
        Self { inner: Arc::new(Inner { directory, limits, session, index: Mutex::new(None) }) }
    }

    fn with_limits(data_dir: &Path, session: Option<&SessionId>, limits: ArtifactLimits) -> Self {
        let session = session.map(|id| id.as_str().to_owned()).unwrap_or_default();
        let inner = Inner { directory: data_dir.join(DIRECTORY), limits, session, index: Mutex::new(None) };
        Self { inner: Arc::new(inner) }
    }
}

impl Inner {
    fn run<T>(&self, work: impl FnOnce(&mut Index) -> Result<T, IndexError>) -> Result<T, ArtifactError> {
        let mut slot = lock_ignoring_poison(&self.index);
        let index = match slot.take() {
            Some(index) => index,
            None => Index::open(&self.directory, self.limits).map_err(|trouble| self.to_error(&trouble))?,
        };
        work(slot.insert(index)).map_err(|trouble| self.to_error(&trouble))
    }

    fn to_error(&self, trouble: &IndexError) -> ArtifactError {
        let message = match trouble {
            IndexError::Other(message) => message.clone(),
            IndexError::Database(_) | IndexError::Io(_) => trouble.message(&self.directory),
        };
        ArtifactError { message }
    }
}

impl Artifacts for ArtifactStore {
    fn begin(&self, new: NewArtifact) -> Result<Box<dyn ArtifactWriter>, ArtifactError> {
        let contents = self.inner.run(|index| Ok(index.contents().clone()))?;
        let file = contents.begin().map_err(|error| self.inner.to_error(&error.into()))?;
        Ok(Box::new(ArtifactFile { inner: Arc::clone(&self.inner), file, hasher: blake3::Hasher::new(), bytes: 0, new }))
    }

    fn find(&self, uri: &str) -> Result<StoredArtifact, ArtifactError> {
        self.inner.run(|index| index.find(uri))
    }

    fn uri_of(&self, path: &Path) -> Option<String> {
        let start = path.parent()?;
        let hash = format!("{}{}", start.file_name()?.to_str()?, path.file_name()?.to_str()?);
        blake3::Hash::from_hex(&hash).ok()?;
        let contents = self.inner.directory.join(contents::DIRECTORY);
        let ours = start.parent()? == contents || start.parent()? == contents.canonicalize().ok()?;
        ours.then(|| index::uri(&hash))
    }

    fn content(&self, uri: &str, max_bytes: u64) -> Result<Vec<u8>, ArtifactError> {
        let kept = self.find(uri)?;
        let mut content = Vec::new();
        let read = File::open(&kept.path).and_then(|file| file.take(max_bytes + 1).read_to_end(&mut content));
        read.map_err(|error| self.inner.to_error(&error.into()))?;
        if content.len() as u64 > max_bytes {
            return Err(ArtifactError { message: format!("`{uri}` is larger than {max_bytes} bytes") });
        }
        Ok(content)
    }

    fn list(&self) -> Result<Vec<Artifact>, ArtifactError> {
        self.inner.run(|index| index.list(&self.inner.session))
    }
}

struct ArtifactFile {
    inner: Arc<Inner>,
    file: NamedTempFile,
    hasher: blake3::Hasher,
    bytes: u64,
    new: NewArtifact,
}

impl ArtifactWriter for ArtifactFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactError> {
        let (most, after) = (self.inner.limits.one_bytes, self.bytes + bytes.len() as u64);
        if after > most {
            return Err(ArtifactError { message: format!("the artifact exceeds the limit of {most} bytes") });
        }
        self.file.write_all(bytes).map_err(|error| self.inner.to_error(&error.into()))?;
        self.hasher.update(bytes);
        self.bytes = after;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Artifact, ArtifactError> {
        let Self { inner, file, hasher, bytes, new } = *self;
        let hash = hasher.finalize().to_hex();
        // Most of the waiting for the disk happens here, outside the lock.
        file.as_file().sync_all().map_err(|error| inner.to_error(&error.into()))?;
        inner.run(|index| index.add(&hash, bytes, new, &inner.session, file))
    }
}
