//! Opens paths safely after they have been checked. A symlink created in the meantime cannot redirect them.

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{Mode, fstatat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Flags for opening a directory only to look up entries in it, which requires no permission to read it.
#[cfg(target_os = "linux")]
const PASS_THROUGH: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY);
#[cfg(not(target_os = "linux"))]
const PASS_THROUGH: OFlag = OFlag::O_DIRECTORY;

/// Opens a regular file for reading. Fails if `real` contains a symlink. Never blocks.
pub(crate) fn open_file(real: &Path) -> io::Result<File> {
    let file = File::from(open_without_links(real, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// Opens a directory for listing. Fails if `real` contains a symlink.
pub(crate) fn open_directory(real: &Path) -> io::Result<OwnedFd> {
    Ok(open_without_links(real, OFlag::O_RDONLY | OFlag::O_DIRECTORY)?)
}

/// Returns a handle to the entry at `real`, without opening it, for inspection and mounts. Fails if `real` contains a
/// symlink or is one.
#[cfg(target_os = "linux")]
pub(crate) fn hold_place(real: &Path) -> io::Result<File> {
    let place = hold_name(real)?;
    if place.metadata()?.is_symlink() {
        return Err(Errno::ELOOP.into());
    }
    Ok(place)
}

/// Returns a handle like [`hold_place`]. If `real` is a symlink, the handle refers to the symlink itself.
#[cfg(target_os = "linux")]
pub(crate) fn hold_name(real: &Path) -> io::Result<File> {
    Ok(File::from(open_without_links(real, OFlag::O_PATH)?))
}

/// Opens a path below an open directory without following symlinks or leaving that directory. An empty path refers to
/// the directory itself.
pub(crate) fn open_below(root: &OwnedFd, below: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{OpenHow, ResolveFlag, openat2};
        let how = OpenHow::new()
            .flags(flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS | ResolveFlag::RESOLVE_BENEATH);
        match openat2(root, below, how) {
            Err(Errno::ENOSYS | Errno::EPERM) => {}
            opened => return opened,
        }
    }
    let mut directory = openat(root, ".", PASS_THROUGH | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut names = below.components().peekable();
    while let Some(name) = names.next() {
        let how = if names.peek().is_none() { flags } else { PASS_THROUGH };
        let name = match name {
            Component::Normal(name) => name,
            Component::CurDir => OsStr::new("."),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::EXDEV),
        };
        directory = openat(&directory, name, how | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW, Mode::empty())?;
    }
    Ok(directory)
}

/// Opens a directory below another one in order to look up entries in it.
pub(crate) fn pass_below(root: &OwnedFd, below: &Path) -> nix::Result<OwnedFd> {
    open_below(root, below, PASS_THROUGH)
}

/// Device and inode, which identify a directory whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryIdentity {
    device: u64,
    inode: u64,
}

/// Returns the identity of the directory at `real`, which must be free of symlinks.
pub(crate) fn identity(real: &Path) -> io::Result<DirectoryIdentity> {
    let metadata = File::from(open_directory(real)?).metadata()?;
    Ok(DirectoryIdentity { device: metadata.dev(), inode: metadata.ino() })
}

/// Returns whether opening a path failed because of a symlink that did not exist when the path was resolved.
pub(crate) fn is_symlink_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ELOOP as i32)
}

/// Opens the parent directory of `real` so that an entry can be created or replaced in it. Returns it with the entry's
/// name.
pub(crate) fn open_parent(real: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the root of the file system has no parent"));
    };
    Ok((open_without_links(parent, PASS_THROUGH)?, name))
}

/// Returns whether every component of the path still exists and none of them, except possibly the last, is a symlink.
pub(crate) fn is_without_links(real: &Path) -> bool {
    let looked = |(directory, name): (OwnedFd, &OsStr)| fstatat(&directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok();
    open_parent(real).is_ok_and(looked)
}

/// Checks many paths for symlinks. A directory shared by consecutive paths is resolved only once.
#[derive(Debug, Default)]
pub(crate) struct WithoutLinks {
    parent: Option<(PathBuf, Option<OwnedFd>)>,
}

impl WithoutLinks {
    pub(crate) fn has(&mut self, real: &Path) -> bool {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { return false };
        let same = self.parent.as_ref().is_some_and(|(last, _)| last.as_os_str() == parent.as_os_str());
        if !same {
            self.parent = Some((parent.to_owned(), open_without_links(parent, PASS_THROUGH).ok()));
        }
        let directory = self.parent.as_ref().and_then(|(_, directory)| directory.as_ref());
        directory.is_some_and(|directory| fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok())
    }
}

/// Returns whether the system would let this process write to the path.
pub(crate) fn may_write(real: &Path) -> bool {
    nix::unistd::access(real, nix::unistd::AccessFlags::W_OK).is_ok()
}

/// Returns whether the system would let this process read the path.
pub(crate) fn may_read(real: &Path) -> bool {
    nix::unistd::access(real, nix::unistd::AccessFlags::R_OK).is_ok()
}

/// Returns the target of the symlink at `real`, whose parent directories must be free of symlinks.
pub(crate) fn read_link(real: &Path) -> io::Result<OsString> {
    let (directory, name) = open_parent(real)?;
    Ok(readlinkat(&directory, name)?)
}

#[cfg(target_os = "linux")]
fn open_without_links(real: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    use nix::fcntl::{OpenHow, ResolveFlag, openat2};
    let how = OpenHow::new()
        .flags(flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    match openat2(nix::fcntl::AT_FDCWD, real, how) {
        // Old kernels do not have this call, and some containers reject it with EPERM.
        Err(Errno::ENOSYS | Errno::EPERM) => open_step_by_step(real, flags),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open_without_links(real: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    open_step_by_step(real, flags)
}

/// Opens a path with one call per component.
pub(super) fn open_step_by_step(real: &Path, flags: OFlag) -> nix::Result<OwnedFd> {
    let passing = PASS_THROUGH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    let mut names = real.components().peekable();
    if names.next_if_eq(&Component::RootDir).is_none() {
        return Err(Errno::EINVAL);
    }
    let first = if names.peek().is_some() { passing } else { flags | OFlag::O_CLOEXEC };
    let mut directory = nix::fcntl::open("/", first, Mode::empty())?;
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else { return Err(Errno::EINVAL) };
        let last = names.peek().is_none();
        let how = if last { flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW } else { passing };
        directory = openat(&directory, name, how, Mode::empty())?;
    }
    Ok(directory)
}

/// Returns the entries of a directory. If the path is replaced after the directory was opened, the entries are still
/// those of the opened directory.
pub(crate) fn entries(real: &Path) -> io::Result<std::fs::ReadDir> {
    let directory = open_directory(real)?;
    if cfg!(target_os = "linux") {
        return std::fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    }
    std::fs::read_dir(real)
}
