//! Files of the user with one entry per line, to which every process appends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Appends lines to a file that only its owner can read. Creates the file and its directory if necessary.
pub(super) fn append(path: &Path, lines: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(lines.as_bytes())
}

/// Reads at most `limit` bytes from the end of a file. The first line of a longer file may be incomplete.
pub(super) fn read_end(path: &Path, limit: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(limit)))?;
    let mut end = Vec::new();
    file.take(limit).read_to_end(&mut end)?;
    Ok(String::from_utf8_lossy(&end).into_owned())
}

/// Replaces a file by one with these lines, which only its owner can read.
pub(super) fn replace(path: &Path, lines: &str) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The temporary file has an unpredictable name and mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(lines.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_large_file_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/lines");
        append(&path, "one\ntwo\n").unwrap();
        append(&path, "three\n").unwrap();
        assert_eq!(read_end(&path, 8).unwrap(), "o\nthree\n");
        assert_eq!(read_end(&path, 100).unwrap(), "one\ntwo\nthree\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_is_private_and_no_symlink_is_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("lines"), directory.path().join("other"));
        fs::write(&other, "other").unwrap();
        symlink(&other, &path).unwrap();
        replace(&path, "one\n").unwrap();
        let is_private = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777 == 0o600;
        assert!(is_private && fs::read_to_string(&path).unwrap() == "one\n");
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
    }
}
