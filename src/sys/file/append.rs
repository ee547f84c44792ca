//! Appends to files of any size. An extended copy replaces the file, so a crash leaves either the old file or the new
//! one.

use super::PreImage;
use super::attributes::keep_attributes;
use super::replace::{
    Parents, Temporary, WriteError, current, is_same, parent_error, replace, stat_if_unchanged, sync_directory,
};
use super::tree::StopCheck;
use crate::sys::path::{open_file, open_parent};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat, fstatat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Chunk size in bytes. It is even, so no UTF-16 code unit is split between two chunks.
const CHUNK_BYTES: usize = 256 * 1024;
/// Number of bytes to copy between two cancellation checks.
const STRETCH_BYTES: u64 = 64 * 1024 * 1024;

/// Passes the content of a file to `visit` in chunks of equal, even size (the last one may be shorter). Returns the
/// content's pre-image.
pub(crate) fn scan(real: &Path, visit: &mut dyn FnMut(&[u8])) -> io::Result<PreImage> {
    read_through(real, visit).map(|content| content.image())
}

/// Hash state of content that was read but not retained.
pub(crate) struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    pub(crate) fn hash(content: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(content);
        Self(hasher)
    }

    pub(crate) fn image(&self) -> PreImage {
        PreImage::Content(self.0.finalize())
    }

    /// Returns the pre-image that the content has once `more` is appended.
    pub(crate) fn with_appended(mut self, more: &[u8]) -> PreImage {
        self.0.update(more);
        self.image()
    }
}

/// Reads a file like `scan`, but returns the hash state, which can also yield the pre-image after an append.
pub(crate) fn read_through(real: &Path, visit: &mut dyn FnMut(&[u8])) -> io::Result<ContentHasher> {
    read_all(&mut open_file(real)?, visit).map(ContentHasher)
}

fn hash(file: &mut File, visit: &mut dyn FnMut(&[u8])) -> io::Result<blake3::Hash> {
    Ok(read_all(file, visit)?.finalize())
}

fn read_all(file: &mut File, visit: &mut dyn FnMut(&[u8])) -> io::Result<blake3::Hasher> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        (&*file).take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            return Ok(hasher);
        }
        hasher.update(&chunk);
        visit(&chunk);
    }
}

/// Appends `more` to the file if the file still matches `before`. On error, the file is unchanged.
pub(crate) fn append(
    real: &Path,
    more: &[u8],
    before: &PreImage,
    parents: Parents,
    stop: StopCheck<'_>,
) -> Result<(), WriteError> {
    let PreImage::Content(expected) = before else { return replace(real, more, before, parents) };
    let (directory, name) = open_parent(real).map_err(|error| parent_error(real, error))?;
    let old = current(&directory, name)?;
    let temporary = Temporary::create(&directory, Some(&old), |copy| {
        copy_all(&open_same(&directory, name, &old)?, copy, stop)?;
        copy.seek(SeekFrom::Start(0))?;
        // Check the copy itself rather than the file, which may change.
        if hash(copy, &mut |_| {})? != *expected {
            return Err(WriteError::Changed);
        }
        copy.seek(SeekFrom::End(0))?;
        copy.write_all(more)?;
        keep_attributes(&directory, name, copy);
        Ok(())
    })?;
    open_same(&directory, name, &old)?;
    temporary.publish_over(name, &old, &|aside| stat_if_unchanged(&directory, aside, expected).map(drop))?;
    sync_directory(&directory);
    Ok(())
}

/// Opens the file with this name. Fails if it is no longer the same file as `old`.
fn open_same(directory: &OwnedFd, name: &OsStr, old: &FileStat) -> Result<File, WriteError> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ENOENT) => return Err(WriteError::Changed),
        Err(errno) => return Err(errno.into()),
    };
    let named = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if is_same(old, &fstat(&file)?) && is_same(old, &named) { Ok(file) } else { Err(WriteError::Changed) }
}

/// Copies the content of a file. Shares the blocks if the file system supports that, and otherwise copies them, in the
/// kernel if possible.
fn copy_all(source: &File, copy: &mut File, stop: StopCheck<'_>) -> Result<(), WriteError> {
    #[cfg(target_os = "linux")]
    if rustix::fs::ioctl_ficlone(&*copy, source).is_ok() {
        return Ok(());
    }
    while io::copy(&mut source.take(STRETCH_BYTES), copy)? > 0 {
        if stop() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped").into());
        }
    }
    Ok(())
}
