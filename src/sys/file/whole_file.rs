//! Whole files: written atomically under a resolved path, and readable by their owner only.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::path::Path;

/// Handling of an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    Replace,
}

/// Writes a file as a whole. A file that must be kept and exists is an error.
pub(crate) fn write_whole(path: &Path, content: &[u8], existing: Existing) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    match existing {
        Existing::Keep => file.persist_noclobber(path)?,
        Existing::Replace => file.persist(path)?,
    };
    // Best effort: some file systems do not support this, and the file already has its name.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

/// Creates a directory that only its owner can use, with its parents.
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
}
