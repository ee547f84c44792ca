//! Private files: owned by the user, not symlinks, and inaccessible to other users.

use super::lock;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{Uid, UnlinkatFlags, unlinkat};
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Mode bits that grant access to the group and to others.
const OTHERS: u32 = 0o077;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivateError {
    #[error("the path is a symlink")]
    Link,
    #[error("the path is not a regular file")]
    NotAFile,
    #[error("others can access it (mode {mode:03o})")]
    OpenToOthers { path: PathBuf, mode: u32 },
    #[error("the file belongs to another user (uid {owner})")]
    NotOwn { owner: u32 },
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl PrivateError {
    /// Returns a hint on how to make the file usable, if there is one.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Self::Link => Some("replace it with the file itself".to_owned()),
            Self::OpenToOthers { path, .. } => Some(format!("run `chmod 600 {}`", quoted(path))),
            Self::NotAFile | Self::NotOwn { .. } | Self::TooLarge(_) | Self::Io(_) => None,
        }
    }
}

/// Reads a private file of at most `limit` bytes, or returns `None` if it does not exist.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, PrivateError> {
    let Some((directory, name)) = directory(path)? else { return Ok(None) };
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match openat(&directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(nix::errno::Errno::ENOENT) => return Ok(None),
        Err(nix::errno::Errno::ELOOP) => return Err(PrivateError::Link),
        Err(errno) => return Err(PrivateError::Io(errno.into())),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(PrivateError::NotAFile);
    }
    if metadata.uid() != Uid::effective().as_raw() {
        return Err(PrivateError::NotOwn { owner: metadata.uid() });
    }
    if metadata.mode() & OTHERS != 0 {
        return Err(PrivateError::OpenToOthers { path: path.to_owned(), mode: metadata.mode() & 0o777 });
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(PrivateError::TooLarge(limit));
    }
    Ok(Some(content))
}

/// Replaces the whole content while holding a lock. `change` receives the old content and returns the new content, or
/// `None` to delete the file.
pub(crate) fn update<E: From<PrivateError>>(
    path: &Path,
    limit: u64,
    change: impl FnOnce(Option<Vec<u8>>) -> Result<Option<Vec<u8>>, E>,
) -> Result<(), E> {
    let failed = |error: io::Error| E::from(PrivateError::Io(error));
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    }
    let _one_after_the_other = lock(&path.with_extension("lock")).map_err(failed)?;
    let content = change(read(path, limit)?)?;
    let Some((directory, name)) = directory(path)? else {
        return Err(failed(io::Error::from(io::ErrorKind::NotFound)));
    };
    let put = match content {
        Some(content) => replace(&directory, name, &content),
        None => match unlinkat(&directory, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(nix::errno::Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        },
    };
    put.map_err(failed)?;
    super::replace::sync_directory(&directory);
    Ok(())
}

/// Opens the directory that contains a file, and returns it with the file name, or `None` if the directory does not
/// exist. The directory may be reached through a symlink, but the file itself must not be one.
fn directory(path: &Path) -> Result<Option<(std::os::fd::OwnedFd, &std::ffi::OsStr)>, PrivateError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(PrivateError::NotAFile) };
    match nix::fcntl::open(parent, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()) {
        Ok(directory) => Ok(Some((directory, name))),
        Err(nix::errno::Errno::ENOENT) => Ok(None),
        Err(errno) => Err(PrivateError::Io(errno.into())),
    }
}

fn replace(directory: &std::os::fd::OwnedFd, name: &std::ffi::OsStr, content: &[u8]) -> io::Result<()> {
    let beside = super::temporary_name::temporary_name();
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(directory, beside.as_os_str(), flags, Mode::from_bits_truncate(0o600))?);
    let written = file.write_all(content).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| Ok(renameat(directory, beside.as_os_str(), directory, name)?));
    if renamed.is_err() {
        let _ = unlinkat(directory, beside.as_os_str(), UnlinkatFlags::NoRemoveDir);
    }
    renamed
}

/// Quotes a path for the shell if necessary.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+@,".contains(letter);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn put(path: &Path, text: &str) {
        update::<PrivateError>(path, 100, |_| Ok(Some(text.into()))).unwrap();
    }

    #[test]
    fn private_files_and_their_directories_are_accessible_only_to_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/keys");
        assert!(read(&path, 100).unwrap().is_none());
        put(&path, "one");
        update::<PrivateError>(&path, 100, |old| Ok(old.map(|old| [old, b" two".to_vec()].concat()))).unwrap();
        assert_eq!(read(&path, 100).unwrap().as_deref(), Some(&b"one two"[..]));
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(dir.path().join("a")).unwrap().mode() & 0o777, 0o700);
        assert!(matches!(read(&path, 3), Err(PrivateError::TooLarge(3))));
        update::<PrivateError>(&path, 100, |_| Ok(None)).unwrap();
        assert!(path.symlink_metadata().is_err());
    }

    #[test]
    fn files_readable_by_others_and_links_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("it's");
        put(&path, "x");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let error = read(&path, 100).unwrap_err();
        let remedy = error.remedy().unwrap();
        assert!(matches!(error, PrivateError::OpenToOthers { mode: 0o640, .. }), "{error}");
        assert!(remedy.contains("chmod 600 '") && remedy.contains("it'\\''s'"), "{remedy}");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(read(&link, 100), Err(PrivateError::Link)));
        assert!(update::<PrivateError>(&link, 100, |_| Ok(Some(Vec::new()))).is_err());
        assert!(matches!(read(dir.path(), 100), Err(PrivateError::NotAFile)));
    }
}
