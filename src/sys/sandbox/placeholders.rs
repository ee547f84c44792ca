//! Placeholders for names that commands must not create. A mount needs a mount point, so a placeholder occupies each
//! such name while commands run, and is removed afterwards. It is an empty directory, or a file where a directory would
//! disturb other programs.
//!
//! Commands that need the same placeholder share it by locking it, and the last one removes it. If a crash leaves a
//! placeholder behind, the next command recognizes and reuses it.

use super::layout::{Layout, PathView, closest_view};
use super::mount_plan::during;
use crate::sys::file::tree::rename_to_new;
use crate::sys::path::{hold_name, hold_place, open_directory, open_file, open_parent};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat, mkdirat, umask};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of a placeholder directory, which no other program uses.
const MARK: u32 = 0o1555;
/// Mode of a placeholder file.
const FILE_MARK: u32 = 0o1444;
/// Name and content of the placeholder for a file that git reads. The content specifies the directory that git uses by
/// default.
const POINTER: (&str, &[u8]) = ("commondir", b".\n");
/// Maximum number of attempts to share a placeholder, since another command may remove it at the last moment.
const ROUNDS: usize = 16;

/// Placeholders that remain in place until they are released.
#[derive(Default)]
pub(super) struct ReservedPlaceholders(Vec<LockedPlaceholder>);

struct LockedPlaceholder {
    parent: OwnedFd,
    name: OsString,
    /// The placeholder, opened with a shared lock. The sandboxed process closes its copy before the command starts.
    stand_in: File,
    kind: Kind,
}

/// Kind of placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    Pointer,
}

impl Kind {
    fn for_path(path: &Path) -> Self {
        if path.file_name().is_some_and(|name| name == POINTER.0) { Self::Pointer } else { Self::Directory }
    }

    /// Creates the placeholder together with its mark, atomically.
    fn make(self, parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
        let before = umask(Mode::empty());
        let made = match self {
            Self::Directory => mkdirat(parent, name, Mode::from_bits_truncate(MARK)).map_err(io::Error::from),
            Self::Pointer => make_pointer(parent, name),
        };
        umask(before);
        made
    }

    fn open(self, path: &Path) -> io::Result<File> {
        match self {
            Self::Directory => open_directory(path).map(File::from),
            Self::Pointer => open_file(path),
        }
    }

    fn removal(self) -> UnlinkatFlags {
        match self {
            Self::Directory => UnlinkatFlags::RemoveDir,
            Self::Pointer => UnlinkatFlags::NoRemoveDir,
        }
    }
}

/// Creates the placeholder file together with its content, atomically.
fn make_pointer(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let aside = OsString::from(format!(".aye-{}", std::process::id()));
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(parent, aside.as_os_str(), flags, Mode::from_bits_truncate(FILE_MARK))?;
    let made = File::from(file).write_all(POINTER.1);
    let made = made.and_then(|()| Ok(rename_to_new((parent, &aside), (parent, name))?));
    if made.is_err() {
        let _ = unlinkat(parent, aside.as_os_str(), UnlinkatFlags::NoRemoveDir);
    }
    made
}

/// Creates placeholders for all names in the layout that must not be created. Names that the command would be unable to
/// create anyway are removed from the layout.
pub(super) fn reserve(layout: &mut Layout) -> Result<ReservedPlaceholders, String> {
    let mut reserved = ReservedPlaceholders::default();
    let guarded: Vec<PathBuf> = layout
        .iter()
        .filter(|(_, seat)| matches!(seat, PathView::Guarded { in_writable: true }))
        .map(|(path, _)| path.clone())
        .collect();
    for path in guarded {
        let Some((first, is_there)) = first_missing(&path)? else { continue };
        if first != path {
            layout.remove(&path);
            layout.entry(first.clone()).or_insert(PathView::Guarded { in_writable: true });
        }
        if is_there || reserved.contains(&first) {
            continue;
        }
        match hold_placeholder(&first) {
            Ok(Some(held)) => reserved.0.push(held),
            // Another entry was created in the meantime, and can itself be protected.
            Ok(None) => {}
            Err(error) if is_uncreatable(&error, &first) => {
                layout.remove(&first);
            }
            Err(error) => {
                return Err(during(format!("cannot prevent the creation of `{}`", first.display()))(error));
            }
        }
    }
    pin(layout);
    Ok(reserved)
}

impl ReservedPlaceholders {
    fn contains(&self, path: &Path) -> bool {
        self.0.iter().any(|held| path.file_name() == Some(&held.name) && held.is_at(path))
    }

    /// Releases the placeholders. Must be called by the process that created them, once the command and all its
    /// processes have ended.
    pub(super) fn release(self) {
        for held in self.0 {
            // Other commands that use the placeholder also lock it, and the last one removes it.
            if held.stand_in.try_lock().is_ok() && held.is_still_there() {
                let _ = unlinkat(&held.parent, held.name.as_os_str(), held.kind.removal());
            }
        }
    }
}

impl LockedPlaceholder {
    fn is_still_there(&self) -> bool {
        let found = fstatat(&self.parent, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
        let own = self.stand_in.metadata();
        found.is_ok_and(|found| own.is_ok_and(|own| (found.st_dev, found.st_ino) == (own.dev(), own.ino())))
    }

    fn is_at(&self, path: &Path) -> bool {
        let there = hold_place(path).and_then(|place| place.metadata());
        let own = self.stand_in.metadata();
        there.is_ok_and(|there| own.is_ok_and(|own| (there.dev(), there.ino()) == (own.dev(), own.ino())))
    }
}

/// Returns the shortest prefix of the path that is missing, is a placeholder, or is a file where a directory would be
/// needed. The flag is `true` in the last case, which requires no placeholder. Returns `None` if the path itself
/// exists.
fn first_missing(path: &Path) -> Result<Option<(PathBuf, bool)>, String> {
    let mut first = None;
    for part in path.ancestors() {
        // A protected symlink is opened itself.
        match if part == path { hold_name(part) } else { hold_place(part) } {
            Ok(place) => {
                let metadata = place.metadata().map_err(during(part.display()))?;
                if is_mark(&metadata) {
                    return Ok(Some((part.to_owned(), false)));
                }
                if !metadata.is_dir() && part != path {
                    return Ok(Some((part.to_owned(), true)));
                }
                return Ok(first.map(|first: &Path| (first.to_owned(), false)));
            }
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::ENOENT) => first = Some(part),
                Some(Errno::ENOTDIR) => {}
                _ => return Err(during(format!("`{}`", part.display()))(error)),
            },
        }
    }
    Ok(None)
}

fn is_mark(metadata: &std::fs::Metadata) -> bool {
    let mark = if metadata.is_dir() { MARK } else { FILE_MARK };
    let is_kind = metadata.is_dir() || (metadata.is_file() && metadata.len() == POINTER.1.len() as u64);
    is_kind && metadata.permissions().mode() & 0o7777 == mark && metadata.uid() == geteuid().as_raw()
}

/// Creates a placeholder or shares an existing one. Returns `None` if the name is used by an entry that is not a
/// placeholder.
fn hold_placeholder(path: &Path) -> io::Result<Option<LockedPlaceholder>> {
    let kind = Kind::for_path(path);
    for _ in 0..ROUNDS {
        let (parent, name) = open_parent(path)?;
        if let Err(error) = kind.make(&parent, name)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        let stand_in = match kind.open(path) {
            Ok(stand_in) => stand_in,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        stand_in.lock_shared()?;
        if !is_mark(&stand_in.metadata()?) {
            return Ok(None);
        }
        let held = LockedPlaceholder { parent, name: name.to_owned(), stand_in, kind };
        // Another command may have removed the placeholder before it was locked.
        if held.is_still_there() {
            return Ok(Some(held));
        }
    }
    Err(io::Error::other("other commands create and remove it repeatedly"))
}

/// Returns whether the command would be unable to create the name too, even by changing the directory's permissions.
fn is_uncreatable(error: &io::Error, path: &Path) -> bool {
    let refused = matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EACCES | Errno::EPERM | Errno::EROFS));
    let parent = path.parent().and_then(|parent| std::fs::symlink_metadata(parent).ok());
    refused && parent.is_some_and(|parent| parent.uid() != geteuid().as_raw())
}

/// Mounts directories over themselves if they contain a protected or hidden path, or a writable exception. Otherwise, a
/// command could move such a directory away, and the rules for its entries would no longer apply.
fn pin(layout: &mut Layout) {
    let kept: Vec<PathBuf> = layout
        .iter()
        .filter(|(_, seat)| matches!(seat, PathView::Guarded { in_writable: true } | PathView::Empty | PathView::Writable))
        .map(|(path, _)| path.clone())
        .collect();
    for path in kept {
        let Some((start, PathView::Writable)) = closest_view(layout, &path).map(|(start, seat)| (start.to_owned(), seat)) else {
            continue;
        };
        for between in path.ancestors().skip(1).take_while(|above| *above != start) {
            layout.insert(between.to_owned(), PathView::Writable);
        }
    }
}
