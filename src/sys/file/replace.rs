//! Atomic replacement: the new file is written next to the old one and then renamed over it.

use super::PreImage;
use super::attributes::keep_attributes;
use crate::sys::path::open_parent;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{AccessFlags, Gid, Uid, UnlinkatFlags, faccessat, fchown, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum time to wait for a lock. Locks are held only briefly, unless their owner hangs.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Maximum size in bytes of a file that is read again when it is replaced, because its timestamps may be too coarse to
/// reveal a change.
const AGAIN_BYTES: i64 = 16 * 1024 * 1024;

/// How to handle missing parent directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parents {
    MustExist,
    Create,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The file changed after it was inspected.
    #[error("the file changed")]
    Changed,
    #[error("the directory `{}` does not exist", .0.display())]
    NoParent(PathBuf),
    #[error("the file is read-only")]
    ReadOnly,
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for WriteError {
    fn from(errno: Errno) -> Self {
        match errno {
            // A symlink was created after the path was resolved.
            Errno::ELOOP => Self::Changed,
            _ => Self::Io(errno.into()),
        }
    }
}

/// Replaces the file at a resolved path if the file still matches `before`. On error, the file is unchanged.
pub(crate) fn replace(real: &Path, content: &[u8], before: &PreImage, parents: Parents) -> Result<(), WriteError> {
    replace_with(real, |file| Ok(file.write_all(content)?), before, parents)
}

/// Like [`replace`], but has `fill` write the new content.
pub(crate) fn replace_with(
    real: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), WriteError>,
    before: &PreImage,
    parents: Parents,
) -> Result<(), WriteError> {
    if parents == Parents::Create && *before == PreImage::Absent {
        create_parents(real)?;
    }
    let (directory, name) = match open_parent(real) {
        Ok(opened) => opened,
        Err(error) => return Err(parent_error(real, error)),
    };
    let old = match before {
        PreImage::Absent => None,
        PreImage::Content(_) => Some(current(&directory, name)?),
    };
    let temporary = Temporary::create(&directory, old.as_ref(), |file| {
        fill(file)?;
        if old.is_some() {
            keep_attributes(&directory, name, file);
        }
        Ok(())
    })?;
    match before {
        PreImage::Absent => temporary.publish_new(name)?,
        PreImage::Content(hash) => {
            let seen = stat_if_unchanged(&directory, name, hash)?;
            temporary.publish_over(name, &seen, &|aside| stat_if_unchanged(&directory, aside, hash).map(drop))?;
        }
    }
    sync_directory(&directory);
    Ok(())
}

/// Opens and locks the file at this path, creating it if necessary. The lock is released when the file is dropped.
/// Fails if the path is a symlink, or if the lock cannot be acquired in time, since its owner may have been suspended.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = File::from(nix::fcntl::open(path, flags, Mode::from_bits_truncate(0o600))?);
    let end = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::WouldBlock, "locked by another aye process"));
            }
            // Without file system locks, changes by other programs are still detected before the replacement.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

pub(super) fn parent_error(real: &Path, error: io::Error) -> WriteError {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT) => WriteError::NoParent(real.parent().unwrap_or(real).to_owned()),
        Some(Errno::ELOOP | Errno::ENOTDIR) => WriteError::Changed,
        _ => WriteError::Io(error),
    }
}

/// Creates the missing parent directories of `real` without following symlinks.
pub(super) fn create_parents(real: &Path) -> Result<(), WriteError> {
    let Some(parent) = real.parent() else { return Ok(()) };
    let mut missing: Vec<&Path> = parent.ancestors().take_while(|path| path.symlink_metadata().is_err()).collect();
    while let Some(path) = missing.pop() {
        let (directory, name) = open_parent(path).map_err(|error| parent_error(path, error))?;
        match mkdirat(&directory, name, Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Creates a directory and its missing parents without following symlinks. Returns whether the directory is new.
pub(crate) fn create_directory(real: &Path) -> Result<bool, WriteError> {
    create_parents(real)?;
    let (directory, name) = open_parent(real).map_err(|error| parent_error(real, error))?;
    match mkdirat(&directory, name, Mode::from_bits_truncate(0o777)) {
        Ok(()) => {
            sync_directory(&directory);
            Ok(true)
        }
        Err(Errno::EEXIST) => match fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?.st_mode & libc::S_IFMT {
            libc::S_IFDIR => Ok(false),
            _ => Err(WriteError::Changed),
        },
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the metadata of the file to be replaced, which must be a regular file and writable.
pub(super) fn current(directory: &OwnedFd, name: &OsStr) -> Result<FileStat, WriteError> {
    let stat = match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::ENOENT) => return Err(WriteError::Changed),
        Err(errno) => return Err(errno.into()),
    };
    if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(WriteError::Changed);
    }
    match faccessat(directory, name, AccessFlags::W_OK, AtFlags::AT_EACCESS) {
        Ok(()) => Ok(stat),
        Err(Errno::EACCES | Errno::EPERM | Errno::EROFS) => Err(WriteError::ReadOnly),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns the file's metadata if its content still matches `hash`. Reads the file as late as possible before it is
/// replaced.
pub(super) fn stat_if_unchanged(directory: &OwnedFd, name: &OsStr, hash: &blake3::Hash) -> Result<FileStat, WriteError> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let mut file = match openat(directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ENOENT) => return Err(WriteError::Changed),
        Err(errno) => return Err(errno.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(WriteError::Changed);
    }
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        };
    }
    let opened = fstat(&file)?;
    let named = match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::ENOENT) => return Err(WriteError::Changed),
        Err(errno) => return Err(errno.into()),
    };
    if (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino) && hasher.finalize() == *hash {
        return Ok(opened);
    }
    Err(WriteError::Changed)
}

/// Returns the metadata of the entry with this name, or `None` if there is no such entry.
pub(super) fn stat_entry(directory: &OwnedFd, name: &OsStr) -> nix::Result<Option<FileStat>> {
    match fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Returns whether both sets of metadata describe the same file with the same content. The `ctime` is not compared,
/// because a rename changes it.
pub(super) fn is_same(old: &FileStat, now: &FileStat) -> bool {
    let known = |stat: &FileStat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    known(old) == known(now)
}

/// Syncs a directory. Errors are ignored, because some file systems cannot sync directories and the rename has already
/// happened.
pub(in crate::sys) fn sync_directory(directory: &OwnedFd) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    if let Ok(readable) = openat(directory, ".", flags, Mode::empty()) {
        let _ = nix::unistd::fsync(&readable);
    }
}

/// File that contains the new content. It is unnamed if the system supports that, so a killed process leaves no file
/// behind. Otherwise it has a temporary name and is removed on drop unless it was renamed into place.
pub(super) struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: OsString,
    standing: TemporaryState,
    /// Metadata of the new file.
    new: FileStat,
}

enum TemporaryState {
    #[cfg(target_os = "linux")]
    Nameless(File),
    Named,
    Published,
}

impl<'a> Temporary<'a> {
    /// Creates the file with the content that `fill` writes, and with the mode and owner of `old`.
    pub(super) fn create(
        directory: &'a OwnedFd,
        old: Option<&FileStat>,
        fill: impl FnOnce(&mut File) -> Result<(), WriteError>,
    ) -> Result<Self, WriteError> {
        let name = super::temporary_name::temporary_name();
        // The umask determines the mode of a new file. A replacement is private until it gets the mode of the old file.
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        let mode = Mode::from_bits_truncate(mode);
        #[cfg(target_os = "linux")]
        if let Some(mut file) = nameless(directory, mode) {
            fill(&mut file)?;
            let new = finalize(&file, old)?;
            return Ok(Self { directory, name, standing: TemporaryState::Nameless(file), new });
        }
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(directory, name.as_os_str(), flags, mode)?);
        let mut temporary = Self { directory, name, standing: TemporaryState::Named, new: fstat(&file)? };
        fill(&mut file)?;
        temporary.new = finalize(&file, old)?;
        Ok(temporary)
    }

    /// Replaces the file that `seen` describes. If another program has changed the entry or its content in the
    /// meantime, that program's version is restored. `same` checks the old file's content again, unless the file is
    /// large.
    pub(super) fn publish_over(
        mut self,
        name: &OsStr,
        seen: &FileStat,
        same: &dyn Fn(&OsStr) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        self.link_name()?;
        match exchange(self.directory, &self.name, name) {
            Ok(true) => {}
            Ok(false) => {
                // Without an atomic exchange, a change between the check and the rename goes unnoticed.
                renameat(self.directory, self.name.as_os_str(), self.directory, name)?;
                self.standing = TemporaryState::Published;
                return Ok(());
            }
            Err(errno) => return Err(errno.into()),
        }
        let still = match stat_entry(self.directory, &self.name)? {
            Some(old) if is_same(seen, &old) => old.st_size > AGAIN_BYTES || same(&self.name).is_ok(),
            _ => false,
        };
        if still {
            return Ok(());
        }
        let Err(_) = self.swap_back(name) else { return Err(WriteError::Changed) };
        let message = format!(
            "other programs saved the file several times during the write; one of the saved versions is next to the file as `{}`",
            self.name.display()
        );
        Err(WriteError::Io(io::Error::other(message)))
    }

    /// Renames the file to `name`, which must not exist yet.
    fn publish_new(mut self, name: &OsStr) -> Result<(), WriteError> {
        self.take_name(name)
    }

    /// Gives an unnamed file its temporary name, because an unnamed file cannot be renamed over another.
    fn link_name(&mut self) -> Result<(), WriteError> {
        #[cfg(target_os = "linux")]
        if let TemporaryState::Nameless(file) = &self.standing {
            give_name(file, self.directory, &self.name)?;
            self.standing = TemporaryState::Named;
        }
        Ok(())
    }

    /// Returns the temporary name, which the old file has after a swap.
    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    pub(super) fn take_name(&mut self, name: &OsStr) -> Result<(), WriteError> {
        let published = match &self.standing {
            #[cfg(target_os = "linux")]
            TemporaryState::Nameless(file) => give_name(file, self.directory, name),
            TemporaryState::Named | TemporaryState::Published => rename_new(self.directory, &self.name, name),
        };
        match published {
            Ok(()) => {
                self.standing = TemporaryState::Published;
                Ok(())
            }
            Err(Errno::EEXIST) => Err(WriteError::Changed),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Undoes `take_name` by renaming the file back to its temporary name.
    pub(super) fn release_name(&mut self, name: &OsStr) -> nix::Result<()> {
        // A file of another program is left in place.
        if !self.is_at(name) {
            return Err(Errno::EBUSY);
        }
        rename_new(self.directory, name, &self.name)?;
        if !self.is_at(&self.name) {
            rename_new(self.directory, &self.name, name)?;
            return Err(Errno::EBUSY);
        }
        self.standing = TemporaryState::Named;
        Ok(())
    }

    /// Returns whether `name` still refers to the new file, unchanged.
    fn is_at(&self, name: &OsStr) -> bool {
        stat_entry(self.directory, name).is_ok_and(|now| now.is_some_and(|now| is_same(&self.new, &now)))
    }

    /// Leaves the file with the temporary name in place instead of removing it on drop.
    pub(super) fn persist(mut self) {
        self.standing = TemporaryState::Published;
    }

    /// Swaps the new file with the old one, which is then removed on drop.
    pub(super) fn swap(&mut self, name: &OsStr) -> Result<(), WriteError> {
        self.link_name()?;
        Ok(swap(self.directory, &self.name, name)?)
    }

    /// Undoes `swap` after a failure. If that is not possible, the file with the temporary name is left in place,
    /// because it may be the only copy of its content. A file that another program put in place of the new one is left
    /// there too.
    pub(super) fn swap_back(&mut self, name: &OsStr) -> nix::Result<()> {
        let standing = std::mem::replace(&mut self.standing, TemporaryState::Published);
        if !self.is_at(name) {
            return Err(Errno::EBUSY);
        }
        swap(self.directory, &self.name, name)?;
        if !self.is_at(&self.name) {
            swap(self.directory, &self.name, name)?;
            return Err(Errno::EBUSY);
        }
        self.standing = standing;
        Ok(())
    }
}

/// Exchanges two names atomically. Returns `false` if the system has no call for that.
fn exchange(directory: &OwnedFd, one: &OsStr, other: &OsStr) -> nix::Result<bool> {
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{RenameFlags, renameat2};
        match renameat2(directory, one, directory, other, RenameFlags::RENAME_EXCHANGE) {
            // The call or this flag is not supported here.
            Err(Errno::ENOSYS | Errno::EINVAL) => Ok(false),
            renamed => renamed.map(|()| true),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (directory, one, other);
        Ok(false)
    }
}

/// Exchanges two names, atomically if the system has a call for that, and otherwise in three steps.
fn swap(directory: &OwnedFd, one: &OsStr, other: &OsStr) -> nix::Result<()> {
    if exchange(directory, one, other)? {
        return Ok(());
    }
    let aside = super::temporary_name::temporary_name();
    match nix::unistd::linkat(directory, other, directory, aside.as_os_str(), AtFlags::empty()) {
        // The file system has no hard links. For a moment, the name does not exist.
        Err(Errno::EPERM | Errno::EOPNOTSUPP | Errno::ENOSYS) => renameat(directory, other, directory, aside.as_os_str())?,
        linked => linked?,
    }
    let renamed = renameat(directory, one, directory, other);
    if renamed.is_err() {
        // If `other` still exists, `aside` is a hard link to the same file. A rename between such links does nothing.
        match stat_entry(directory, other) {
            Ok(Some(_)) => unlinkat(directory, aside.as_os_str(), UnlinkatFlags::NoRemoveDir)?,
            _ => rename_new(directory, &aside, other)?,
        }
        return renamed;
    }
    renameat(directory, aside.as_os_str(), directory, one)
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let TemporaryState::Named = self.standing {
            let _ = unlinkat(self.directory, self.name.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Sets the final mode and owner, syncs the file to disk and returns its metadata.
fn finalize(file: &File, old: Option<&FileStat>) -> Result<FileStat, WriteError> {
    if let Some(old) = old {
        dress(file, old)?;
    }
    file.sync_all()?;
    Ok(fstat(file)?)
}

/// Creates an unnamed file that disappears with the process. Returns `None` if the file system cannot create such a
/// file, or if the file could not be named later.
#[cfg(target_os = "linux")]
fn nameless(directory: &OwnedFd, mode: Mode) -> Option<File> {
    let file = File::from(openat(directory, ".", OFlag::O_RDWR | OFlag::O_TMPFILE | OFlag::O_CLOEXEC, mode).ok()?);
    proc_path(&file).exists().then_some(file)
}

#[cfg(target_os = "linux")]
fn proc_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives an unnamed file a name. Fails if the name is already in use.
#[cfg(target_os = "linux")]
fn give_name(file: &File, directory: &OwnedFd, name: &OsStr) -> nix::Result<()> {
    nix::unistd::linkat(nix::fcntl::AT_FDCWD, &proc_path(file), directory, name, AtFlags::AT_SYMLINK_FOLLOW)
}

#[cfg(target_os = "linux")]
fn rename_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> nix::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    match renameat2(directory, from, directory, to, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::ENOSYS | Errno::EINVAL) => link_new(directory, from, to),
        renamed => renamed,
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> nix::Result<()> {
    link_new(directory, from, to)
}

/// Renames a file by means of a hard link. Unlike a plain rename, this fails if the new name exists.
fn link_new(directory: &OwnedFd, from: &OsStr, to: &OsStr) -> nix::Result<()> {
    nix::unistd::linkat(directory, from, directory, to, AtFlags::empty())?;
    unlinkat(directory, from, UnlinkatFlags::NoRemoveDir)
}

/// Gives the new file the owner and mode of the old one. Set-ID bits are dropped, as they are whenever a file is
/// written.
fn dress(file: &File, old: &FileStat) -> Result<(), WriteError> {
    let new = fstat(file)?;
    let group_kept = (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid)
        || fchown(file, Some(Uid::from_raw(old.st_uid)), Some(Gid::from_raw(old.st_gid))).is_ok()
        || fchown(file, None, Some(Gid::from_raw(old.st_gid))).is_ok();
    // If the group could not be set, group permissions would apply to another group.
    let rights = if group_kept { 0o1777 } else { 0o1707 };
    fchmod(file, Mode::from_bits_truncate(old.st_mode & rights))?;
    Ok(())
}
