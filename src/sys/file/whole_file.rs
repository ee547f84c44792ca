//! Files that are always written as a whole: atomically, at a resolved path, and readable only by their owner.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How to treat an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    Replace,
}

/// Future content of a file. Its temporary file already exists, so that the directory is known to be writable.
#[derive(Debug)]
pub(crate) struct PreparedFile {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl PreparedFile {
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { file: tempfile::NamedTempFile::new_in(directory_of(path))?, path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the content and gives the file its name. A file that must be kept and exists is an error.
    pub(crate) fn commit(mut self, content: &[u8], existing: Existing) -> io::Result<()> {
        self.file.write_all(content)?;
        self.file.as_file().sync_all()?;
        match existing {
            Existing::Keep => self.file.persist_noclobber(&self.path)?,
            Existing::Replace => self.file.persist(&self.path)?,
        };
        // Best effort: some file systems do not support this, and the file is already in place.
        let _ = File::open(directory_of(&self.path)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a whole file. With [`Existing::Keep`], fails if the file exists.
pub(crate) fn write_whole(path: &Path, content: &[u8], existing: Existing) -> io::Result<()> {
    PreparedFile::new(path)?.commit(content, existing)
}

/// Creates a directory that only its owner can use, along with its missing parents.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_kept_or_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write_whole(&path, b"first", Existing::Keep).unwrap();
        let kept = write_whole(&path, b"second", Existing::Keep).unwrap_err();
        assert_eq!((kept.kind(), std::fs::read(&path).unwrap()), (io::ErrorKind::AlreadyExists, b"first".to_vec()));
        write_whole(&path, b"second", Existing::Replace).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_prepared_file_changes_nothing_until_it_is_committed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        drop(PreparedFile::new(&path).unwrap());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "no temporary file is left");
        let prepared = PreparedFile::new(&path).unwrap();
        assert!(!path.exists());
        prepared.commit(b"new", Existing::Keep).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        PreparedFile::new(&path.join("below a file")).unwrap_err();
    }
}
