//! Objects below a prefix of an object store, with size-limited reads and conditional replacement.

use super::error::{WorkspaceError, WorkspaceProblem};
use crate::protocol::Problem;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion, WriteMultipart};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Part size in bytes for large objects. Smaller objects are sent in a single request.
const PART_BYTES: usize = 5 << 20;
/// Name of the file used to lock a directory while a head is being replaced.
const LOCK: &str = ".aye-lock";

/// Version of an object, used to replace the object only if it has not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ObjectVersion(UpdateVersion);

/// Outcome of a conditional replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaced {
    Yes,
    /// Another machine replaced the object first.
    No,
}

/// Object in a folder listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedObject {
    /// Last component of the object's name.
    pub file_name: String,
    /// Modification time in milliseconds, according to the store's clock.
    pub modified_ms: i64,
}

/// The objects below a prefix in an object store.
#[derive(Clone)]
pub(crate) struct Bucket {
    objects: Arc<dyn ObjectStore>,
    /// URL of the prefix, without a trailing slash.
    url: String,
    prefix: String,
    /// Path of the store, if it is a local directory. It is needed for locking, because the library cannot replace
    /// files conditionally.
    directory: Option<PathBuf>,
}

impl Bucket {
    pub(super) fn new(objects: Arc<dyn ObjectStore>, url: String, prefix: String, directory: Option<PathBuf>) -> Self {
        Self { objects, url, prefix, directory }
    }

    /// Returns the URL of an object.
    pub(crate) fn uri(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    fn path(&self, name: &str) -> ObjectPath {
        // Names consist of validated parts, and the prefix was validated together with the settings.
        ObjectPath::from(if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) })
    }

    fn error(&self, action: &str, name: &str, error: &object_store::Error) -> WorkspaceError {
        WorkspaceError::from_library(format!("cannot {action} `{}`", self.uri(name)), error)
    }

    /// Reads an object of at most `max_bytes`. Returns `None` if the object does not exist.
    pub(super) async fn read(&self, name: &str, max_bytes: u64) -> Result<Option<(Vec<u8>, ObjectVersion)>, WorkspaceError> {
        let failed = |error: &object_store::Error| self.error("read", name, error);
        let found = match self.objects.get_opts(&self.path(name), GetOptions::default()).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let too_large = || WorkspaceError::damaged(&self.uri(name), format!("larger than {max_bytes} bytes"));
        if found.meta.size > max_bytes {
            return Err(too_large());
        }
        let version = ObjectVersion(UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() });
        let (size, mut content) = (found.meta.size, Vec::new());
        let mut chunks = found.into_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| failed(&error))?;
            if content.len() as u64 + chunk.len() as u64 > max_bytes {
                return Err(too_large());
            }
            content.extend_from_slice(&chunk);
        }
        if content.len() as u64 != size {
            return Err(self.truncated(name, content.len() as u64, size));
        }
        Ok(Some((content, version)))
    }

    /// Reads an object like `read`, but returns it without its version.
    pub(crate) async fn read_object(&self, name: &str, max_bytes: u64) -> Result<Option<Vec<u8>>, WorkspaceError> {
        Ok(self.read(name, max_bytes).await?.map(|(content, _)| content))
    }

    /// Downloads an object to a file. Fails if its size or digest differs from the expected one.
    pub(super) async fn download(
        &self,
        name: &str,
        digest: &str,
        bytes: u64,
        file: &mut impl Write,
    ) -> Result<(), WorkspaceError> {
        let failed = |error: &object_store::Error| self.error("read", name, error);
        let found = match self.objects.get_opts(&self.path(name), GetOptions::default()).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Err(self.missing(name)),
            Err(error) => return Err(failed(&error)),
        };
        let (mut hasher, mut count) = (blake3::Hasher::new(), 0);
        let mut chunks = found.into_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| failed(&error))?;
            count += chunk.len() as u64;
            if count > bytes {
                return Err(WorkspaceError::damaged(&self.uri(name), format!("larger than {bytes} bytes")));
            }
            hasher.update(&chunk);
            file.write_all(&chunk).map_err(|error| {
                WorkspaceError::local(Problem::new(format!("cannot store `{}`", self.uri(name))).because(error))
            })?;
        }
        if count != bytes {
            return Err(self.truncated(name, count, bytes));
        }
        if hasher.finalize().to_hex().as_str() != digest {
            return Err(WorkspaceError::damaged(&self.uri(name), "the content does not match its digest"));
        }
        Ok(())
    }

    fn truncated(&self, name: &str, count: u64, bytes: u64) -> WorkspaceError {
        WorkspaceError::damaged(&self.uri(name), format!("truncated: {count} of {bytes} bytes"))
    }

    /// Returns the error for a missing object that should exist.
    pub(super) fn missing(&self, name: &str) -> WorkspaceError {
        let error = WorkspaceError::damaged(&self.uri(name), "the object does not exist");
        WorkspaceError { kind: WorkspaceProblem::Missing, ..error }
    }

    /// Returns whether an object with this name and size exists.
    pub(super) async fn has(&self, name: &str, bytes: u64) -> Result<bool, WorkspaceError> {
        match self.objects.head(&self.path(name)).await {
            Ok(found) => Ok(found.size == bytes),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.error("read", name, &error)),
        }
    }

    /// Uploads a file under a name derived from its content. If an object with the same name and size already exists,
    /// it is kept.
    pub(super) async fn upload(&self, name: &str, bytes: u64, content: File) -> Result<(), WorkspaceError> {
        let failed = |error: &object_store::Error| self.error("write", name, error);
        let path = self.path(name);
        if self.has(name, bytes).await? {
            return Ok(());
        }
        let content = Arc::new(content);
        let first = self.part(name, &content).await?;
        if (first.len() as u64) == bytes {
            return self.objects.put(&path, first.into()).await.map(drop).map_err(|error| failed(&error));
        }
        let upload = self.objects.put_multipart(&path).await.map_err(|error| failed(&error))?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        let mut part = first;
        while !part.is_empty() {
            upload.wait_for_capacity(1).await.map_err(|error| failed(&error))?;
            upload.put(part);
            part = self.part(name, &content).await?;
        }
        upload.finish().await.map(drop).map_err(|error| failed(&error))
    }

    /// Reads the next part of a file. The part is empty at the end of the file.
    async fn part(&self, name: &str, content: &Arc<File>) -> Result<Bytes, WorkspaceError> {
        let content = content.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut part = Vec::new();
            (&*content).take(PART_BYTES as u64).read_to_end(&mut part)?;
            Ok::<_, std::io::Error>(part)
        });
        match read.await.unwrap_or_else(|error| Err(error.into())) {
            Ok(part) => Ok(part.into()),
            Err(error) => Err(WorkspaceError::local(Problem::new(format!("cannot upload `{}`", self.uri(name))).because(error))),
        }
    }

    /// Writes an object if its current version is `expected`. If `expected` is `None`, writes it only if it does not
    /// exist yet.
    pub(super) async fn replace(
        &self,
        name: &str,
        expected: Option<&ObjectVersion>,
        content: Vec<u8>,
    ) -> Result<Replaced, WorkspaceError> {
        let _lock = self.lock().await?;
        let mode = match (expected, &self.directory) {
            (None, _) => PutMode::Create,
            (Some(version), None) => PutMode::Update(version.0.clone()),
            (Some(version), Some(_)) => match self.objects.head(&self.path(name)).await {
                Ok(found) if found.e_tag == version.0.e_tag => PutMode::Overwrite,
                Ok(_) | Err(object_store::Error::NotFound { .. }) => return Ok(Replaced::No),
                Err(error) => return Err(self.error("write", name, &error)),
            },
        };
        match self.objects.put_opts(&self.path(name), content.into(), PutOptions::from(mode)).await {
            Ok(_) => Ok(Replaced::Yes),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(Replaced::No),
            Err(error) => Err(self.error("write", name, &error)),
        }
    }

    /// Locks a store that is a directory against other processes until the returned file is dropped.
    async fn lock(&self) -> Result<Option<File>, WorkspaceError> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let path = directory.join(LOCK);
        let failed = |why: String| {
            let problem = Problem::new(format!("cannot lock `{}`", path.display())).because(why);
            WorkspaceError::new(WorkspaceProblem::Temporary, problem)
        };
        let shown = path.clone();
        let locked = tokio::task::spawn_blocking(move || {
            let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(&shown)?;
            file.lock()?;
            Ok::<_, std::io::Error>(file)
        });
        match locked.await {
            Ok(Ok(file)) => Ok(Some(file)),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Lists at most `most` objects in a folder.
    pub(super) async fn list(&self, folder: &str, most: usize) -> Result<Vec<ListedObject>, WorkspaceError> {
        let failed = |error: &object_store::Error| self.error("list", folder, error);
        let path = self.path(folder);
        let listed = self.objects.list(Some(&path)).take(most).map_ok(|found| ListedObject {
            file_name: found.location.filename().unwrap_or_default().to_owned(),
            modified_ms: found.last_modified.timestamp_millis(),
        });
        listed.try_collect().await.map_err(|error| failed(&error))
    }

    /// Deletes an object to which nothing refers any more. If this fails, the object is left in place.
    pub(super) async fn discard(&self, name: &str) {
        if let Err(error) = self.objects.delete(&self.path(name)).await {
            tracing::debug!(name, %error, "cannot delete an unused object");
        }
    }
}

/// Creates the folders inside a directory, accessible only to their owner. Returns an error if the directory itself
/// does not exist.
pub(super) fn prepare_directory(directory: &Path, folders: &[&str]) -> Result<(), WorkspaceError> {
    use std::os::unix::fs::DirBuilderExt;
    let wrong = |path: &Path, why: String| {
        let problem = Problem::new(format!("cannot use the directory `{}`", path.display())).because(why);
        WorkspaceError::new(WorkspaceProblem::Settings, problem.hint("create the directory, or check `services.workspace.url`"))
    };
    if !directory.is_dir() {
        return Err(wrong(directory, "the directory does not exist".to_owned()));
    }
    for folder in folders {
        let path = directory.join(folder);
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        created.map_err(|error| wrong(&path, error.to_string()))?;
    }
    Ok(())
}
