//! aye's key file, which only its owner can read.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// Key size in bytes.
const BYTES: usize = 32;

/// Returns the key stored in the file. If the file does not exist, creates it with `fresh` as the key. If two processes
/// create it at the same time, both get the same key.
pub(crate) fn read_or_create(path: &Path, fresh: &[u8; BYTES]) -> io::Result<[u8; BYTES]> {
    if let Some(parent) = path.parent() {
        let mut directory = DirBuilder::new();
        directory.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
        directory.create(parent)?;
    }
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, fresh),
        // The file is too short: the disk was full, or another program wrote to it. The lock ensures that all processes
        // agree on the new key.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let _one_after_the_other = super::lock(&path.with_extension("lock"))?;
            match read(path) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    std::fs::remove_file(path)?;
                    make(path, fresh)
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, fresh),
                found => found,
            }
        }
        found => found,
    }
}

fn make(path: &Path, fresh: &[u8; BYTES]) -> io::Result<[u8; BYTES]> {
    // The key is written to a temporary file and linked into place, so that no process reads a partial key.
    let beside = path.with_extension(format!("{}.new", uuid::Uuid::new_v4().simple()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut file| {
        file.write_all(fresh)?;
        file.sync_all()
    });
    let linked = written.and_then(|()| std::fs::hard_link(&beside, path));
    let _ = std::fs::remove_file(&beside);
    match linked {
        Ok(()) => Ok(*fresh),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> io::Result<[u8; BYTES]> {
    let mut secret = [0; BYTES];
    super::super::path::open_file(path)?.read_exact(&mut secret)?;
    Ok(secret)
}
