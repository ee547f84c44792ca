//! Snapshot contents on disk, each stored in a file named after its hash.

use super::file_stat::{open, stamp_of};
use crate::ports::ContentId;
use crate::sys::file::FileStamp;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Maximum size in bytes of a file that is first read into memory, and then written only if its content is new.
const WHOLE_BYTES: u64 = 1 << 20;
const CHUNK_BYTES: usize = 256 << 10;
/// Number of attempts to read a file that keeps changing while it is being read.
const TRIES: usize = 3;

pub(super) struct Objects {
    directory: PathBuf,
}

/// Content that was stored for a file.
pub(super) struct StoredContent {
    pub id: ContentId,
    pub bytes: u64,
    /// The file's stamp when its content was read.
    pub stamp: FileStamp,
    pub is_new: bool,
}

impl Objects {
    pub(super) fn open(directory: PathBuf) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        Ok(Self { directory })
    }

    pub(super) fn path(&self, id: ContentId) -> PathBuf {
        let name = blake3::Hash::from_bytes(id.0).to_hex();
        self.directory.join(&name[..2]).join(&name[2..])
    }

    /// Stores the content of a file, provided that the file does not change while it is being read. Returns `None` if
    /// it changes during every attempt.
    pub(super) fn keep(&self, path: &Path) -> io::Result<Option<StoredContent>> {
        for _ in 0..TRIES {
            let (mut file, before) = open(path)?;
            let (id, bytes, is_new) = self.add(&mut file)?;
            if stamp_of(&file)? == before {
                return Ok(Some(StoredContent { id, bytes, stamp: before, is_new }));
            }
        }
        Ok(None)
    }

    fn add(&self, file: &mut File) -> io::Result<(ContentId, u64, bool)> {
        let mut start = Vec::new();
        Read::by_ref(file).take(WHOLE_BYTES + 1).read_to_end(&mut start)?;
        if start.len() as u64 <= WHOLE_BYTES {
            let id = ContentId(*blake3::hash(&start).as_bytes());
            let is_new = self.write_object(id, |to| to.write_all(&start))?;
            return Ok((id, start.len() as u64, is_new));
        }
        let mut temporary = tempfile::Builder::new().permissions(private()).tempfile_in(&self.directory)?;
        let (mut hasher, mut bytes) = (blake3::Hasher::new(), start.len() as u64);
        hasher.update(&start);
        temporary.write_all(&start)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = file.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            hasher.update(&chunk[..count]);
            temporary.write_all(&chunk[..count])?;
            bytes += count as u64;
        }
        let id = ContentId(*hasher.finalize().as_bytes());
        Ok((id, bytes, self.name(id, temporary)?))
    }

    /// Writes a content file, unless it already exists. Returns whether it was new.
    fn write_object(&self, id: ContentId, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<bool> {
        if self.path(id).exists() {
            return Ok(false);
        }
        let mut temporary = tempfile::Builder::new().permissions(private()).tempfile_in(&self.directory)?;
        write(temporary.as_file_mut())?;
        self.name(id, temporary)
    }

    fn name(&self, id: ContentId, temporary: tempfile::NamedTempFile) -> io::Result<bool> {
        let path = self.path(id);
        if path.exists() {
            return Ok(false);
        }
        if let Some(parent) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        temporary.persist(&path).map_err(|error| error.error)?;
        Ok(true)
    }

    /// Reads a stored content and verifies its hash.
    pub(super) fn read(&self, id: ContentId) -> io::Result<Vec<u8>> {
        let content = std::fs::read(self.path(id))?;
        if blake3::hash(&content).as_bytes() == &id.0 {
            return Ok(content);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the stored content is damaged"))
    }

    /// Returns the hash and size of a file's content, or `None` if it is longer than `limit` bytes.
    pub(super) fn hash(path: &Path, limit: u64) -> io::Result<Option<(ContentId, u64)>> {
        let (file, _) = open(path)?;
        if file.metadata()?.len() > limit {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        let bytes = io::copy(&mut file.take(limit + 1), &mut hasher)?;
        Ok((bytes <= limit).then(|| (ContentId(*hasher.finalize().as_bytes()), bytes)))
    }

    /// Deletes contents that are not wanted, and unfinished files left behind by a crash.
    pub(super) fn sweep(&self, wanted: impl Fn(&ContentId) -> bool) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.directory)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                std::fs::remove_file(entry.path())?;
                continue;
            }
            for content in std::fs::read_dir(entry.path())? {
                let content = content?;
                let name = format!("{}{}", entry.file_name().to_string_lossy(), content.file_name().to_string_lossy());
                let id = blake3::Hash::from_hex(name.as_bytes()).map(|hash| ContentId(*hash.as_bytes()));
                if !id.as_ref().is_ok_and(&wanted) {
                    std::fs::remove_file(content.path())?;
                }
            }
        }
        Ok(())
    }
}

fn private() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o600)
}
