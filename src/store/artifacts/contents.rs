//! Artifact contents on disk, including unfinished files. Each content is stored in a file named after its hash.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Subdirectory of the artifact directory. The policy also refers to it.
pub(super) const DIRECTORY: &str = "contents";
/// File name prefix of unfinished contents.
const UNFINISHED: &str = ".unfinished-";
/// Number of attempts to create a file that is not deleted by another process before it is locked.
const TRIES: usize = 5;

#[derive(Clone)]
pub(super) struct ArtifactContents {
    directory: PathBuf,
}

impl ArtifactContents {
    pub(super) fn open(directory: PathBuf) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        Ok(Self { directory })
    }

    pub(super) fn path(&self, hash: &str) -> PathBuf {
        let (start, rest) = hash.split_at(2.min(hash.len()));
        self.directory.join(start).join(rest)
    }

    /// Creates a file for new content. The file stays locked for as long as it is being written, so other processes can
    /// tell it apart from files left over by a crash.
    pub(super) fn begin(&self) -> io::Result<NamedTempFile> {
        for _ in 0..TRIES {
            let file = tempfile::Builder::new()
                .prefix(UNFINISHED)
                .permissions(std::fs::Permissions::from_mode(0o600))
                .tempfile_in(&self.directory)?;
            match file.as_file().try_lock() {
                // On a file system without locks, there is no concurrent cleanup either.
                Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
                Err(TryLockError::WouldBlock) => {}
                _ if file.as_file().metadata()?.nlink() == 0 => {}
                _ => return Ok(file),
            }
        }
        Err(io::Error::other("another process keeps deleting the temporary file"))
    }

    /// Moves completed content to the file named after its hash. Must not run while contents are being evicted.
    pub(super) fn name(&self, hash: &str, mut file: NamedTempFile) -> io::Result<()> {
        let path = self.path(hash);
        file.flush()?;
        // An existing file may be damaged, whereas the new file is known to be intact.
        file.as_file().sync_all()?;
        let parent = path.parent().unwrap_or(&self.directory).to_owned();
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&parent)?;
        file.persist(&path).map_err(|error| error.error)?;
        File::open(&parent)?.sync_all()
    }

    pub(super) fn remove(&self, hash: &str) -> io::Result<()> {
        match std::fs::remove_file(self.path(hash)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns whether the stored content still matches its hash.
    pub(super) fn matches_hash(&self, hash: &str) -> io::Result<bool> {
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut File::open(self.path(hash))?, &mut hasher)?;
        Ok(hasher.finalize().to_hex().as_str() == hash)
    }

    /// Deletes unfinished files that no process is writing, and lists the hash and size of every content.
    pub(super) fn tidy(&self) -> io::Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                for content in std::fs::read_dir(entry.path())? {
                    let content = content?;
                    let hash = format!("{name}{}", content.file_name().to_string_lossy());
                    if content.file_type()?.is_file() && blake3::Hash::from_hex(&hash).is_ok() {
                        found.push((hash, content.metadata()?.len()));
                    }
                }
            } else if name.starts_with(UNFINISHED) {
                remove_if_abandoned(&entry.path())?;
            }
        }
        Ok(found)
    }
}

fn remove_if_abandoned(path: &Path) -> io::Result<()> {
    let gone = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return gone(error),
    };
    match file.try_lock() {
        Ok(()) => std::fs::remove_file(path).or_else(gone),
        // The file is still being written, or its state is unknown.
        Err(_) => Ok(()),
    }
}
