//! Access to files below a directory to which untrusted programs can write. Each directory in the path is opened
//! relative to its parent, so a symlink cannot lead elsewhere, even if it is created at the same time.

use super::ReadError;
use super::tree::open_directory_at;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fchmod, mkdirat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

/// Reads a regular file of at most `limit` bytes at the path `below`, relative to `root`. A symlink in the path is an
/// error.
pub(crate) fn read_below(root: &Path, below: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let (mut directory, names, name) = start(root, below)?;
    for name in names {
        directory = open_directory_at(&directory, name).map_err(io::Error::from)?;
    }
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = File::from(openat(&directory, name, flags, Mode::empty()).map_err(io::Error::from)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
    }
    if metadata.len() > limit {
        return Err(ReadError::TooLarge { bytes: metadata.len(), limit });
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(ReadError::TooLarge { bytes: content.len() as u64, limit });
    }
    Ok(content)
}

/// Creates a new file, along with any missing directories in its path. `mode_of` returns the mode for a path below the
/// root. A symlink in the path is an error.
pub(crate) fn create_below(root: &Path, below: &Path, content: &[u8], mode_of: &dyn Fn(&Path) -> u32) -> io::Result<()> {
    let mode = |path: &Path| Mode::from_bits_truncate((mode_of(path) & 0o777) as nix::libc::mode_t);
    let (mut directory, names, name) = start(root, below)?;
    let mut path = std::path::PathBuf::new();
    for name in names {
        path.push(name);
        let made = match mkdirat(&directory, name, Mode::S_IRWXU) {
            Ok(()) => true,
            Err(nix::errno::Errno::EEXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        directory = open_directory_at(&directory, name)?;
        if made {
            fchmod(&directory, mode(&path))?;
        }
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(&directory, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
    file.write_all(content)?;
    Ok(fchmod(&file, mode(below))?)
}

/// Opens the root and splits the path below it. Returns the open root, the names of the directories in the path, and
/// the file name.
fn start<'a>(root: &Path, below: &'a Path) -> io::Result<(OwnedFd, Vec<&'a OsStr>, &'a OsStr)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = |part| match part {
        Component::Normal(name) => Ok(name),
        _ => Err(invalid()),
    };
    let mut names = below.components().map(name).collect::<io::Result<Vec<_>>>()?;
    let last = names.pop().ok_or_else(invalid)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    Ok((nix::fcntl::open(root, flags, Mode::empty())?, names, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn symlinks_in_the_path_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("root"), place.path().join("outside"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("a"), "mine").unwrap();
        symlink(&outside, root.join("x")).unwrap();
        symlink(outside.join("a"), root.join("b")).unwrap();
        for below in ["x/a", "b", "../outside/a", ""] {
            assert!(read_below(&root, Path::new(below), 100).is_err(), "{below}");
            assert!(create_below(&root, Path::new(below), b"stolen", &|_| 0o644).is_err(), "{below}");
        }
        assert_eq!(std::fs::read_to_string(outside.join("a")).unwrap(), "mine");
        create_below(&root, Path::new("y/z/a"), b"new", &|_| 0o755).unwrap();
        assert_eq!(read_below(&root, Path::new("y/z/a"), 3).unwrap(), b"new".to_vec());
        assert!(matches!(read_below(&root, Path::new("y/z/a"), 2), Err(ReadError::TooLarge { bytes: 3, limit: 2 })));
        assert!(read_below(&root, Path::new("y/z"), 100).is_err(), "a directory is not a file");
    }
}
