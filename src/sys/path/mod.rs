//! Path resolution: follows symlinks as the kernel does, without opening any file.

mod facts;
mod open;
#[cfg(test)]
mod tests;

pub(crate) use facts::{EntryKind, Facts, facts};
pub(crate) use open::{
    DirectoryIdentity, WithoutLinks, entries, identity, is_symlink_error, is_without_links, may_read, may_write, open_directory,
    open_file, open_parent, read_link,
};
pub(super) use open::{open_below, pass_below};

#[cfg(target_os = "linux")]
pub(crate) use open::{hold_name, hold_place};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Maximum length in bytes of a path in the kernel, including the final NUL.
const MAX_PATH_BYTES: usize = 4096;
/// Maximum length in bytes of a single name in a path.
const MAX_NAME_BYTES: usize = 255;
/// Number of symlinks that may be followed before a path is considered a loop, as in the kernel.
const MAX_LINKS: usize = 40;

/// Kind of entry found at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    File {
        bytes: u64,
    },
    Directory,
    Missing,
    Special,
    /// A symlink. Occurs only if the path itself was requested rather than its target.
    Link {
        bytes: u64,
    },
}

/// A path with all symlinks resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    /// Absolute path without `.` and `..`. All symlinks in the part that exists are resolved.
    pub real: PathBuf,
    pub kind: PathKind,
    /// Whether the path ended in a slash or a dot, and therefore refers to a directory.
    pub names_directory: bool,
    /// Whether a symlink was followed.
    pub through_links: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("the path is empty; expected a path relative to the workspace, or an absolute path")]
    Empty,
    #[error("the path contains a NUL byte, which file names do not allow; use another path")]
    Nul,
    #[error("the path is too long: at most {MAX_PATH_BYTES} bytes, and {MAX_NAME_BYTES} for one name; use a shorter path")]
    TooLong,
    #[error("`{0}` is not supported; only `~` and `~/…` can name a home directory (for a file with that name, write `./{0}`)")]
    OtherHome(String),
    #[error("cannot expand `~`: this process has no home directory; use an absolute path")]
    NoHome,
    #[error("`{}` goes through more than {MAX_LINKS} symlinks, probably a loop; use the path of the target", .0.display())]
    Loop(PathBuf),
    #[error("`{}` is a link that the kernel creates for a process; use the path of its target", .0.display())]
    Magic(PathBuf),
    #[error("`{}` is not a directory, so it contains no other paths; list its parent with ListDirectory", .0.display())]
    NotADirectory(PathBuf),
    #[error("cannot inspect `{}`: permission denied; ask the user for access", .0.display())]
    Denied(PathBuf),
    #[error("cannot inspect `{}`: {message}", path.display())]
    Unreadable { path: PathBuf, message: String },
}

/// Makes a path absolute by its text alone: expands `~` and joins a relative path to `workspace`. Does not access the
/// disk.
fn absolute(given: &str, workspace: &Path, home: Option<&Path>) -> Result<PathBuf, PathError> {
    if given.is_empty() {
        return Err(PathError::Empty);
    }
    if given.contains('\0') {
        return Err(PathError::Nul);
    }
    if given.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return Err(PathError::TooLong);
    }
    let path = match given.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            home.ok_or(PathError::NoHome)?.join(rest.trim_start_matches('/'))
        }
        Some(rest) => {
            let name = rest.split('/').next().unwrap_or_default();
            return Err(PathError::OtherHome(format!("~{name}")));
        }
        None => workspace.join(given),
    };
    if path.as_os_str().len() >= MAX_PATH_BYTES {
        return Err(PathError::TooLong);
    }
    Ok(path)
}

/// Returns the absolute path without `.` and `..`, derived from the text alone, as if there were no symlinks.
pub(crate) fn lexical(given: &str, workspace: &Path, home: Option<&Path>) -> Result<PathBuf, PathError> {
    let mut real = PathBuf::from("/");
    for component in absolute(given, workspace, home)?.components() {
        match component {
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => real.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(real)
}

/// Resolves every symlink in `given`. A `..` is applied after the symlink before it has been resolved. Components that
/// do not exist are left as written.
pub(crate) fn resolve(given: &str, workspace: &Path, home: Option<&Path>) -> Result<ResolvedPath, PathError> {
    walk(given, workspace, home, Last::Followed)
}

/// Resolves a path like [`resolve`], but does not follow a final symlink unless the path ends in a slash.
pub(crate) fn resolve_entry(given: &str, workspace: &Path, home: Option<&Path>) -> Result<ResolvedPath, PathError> {
    walk(given, workspace, home, Last::Kept)
}

/// How to handle a symlink at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Followed,
    Kept,
}

fn walk(given: &str, workspace: &Path, home: Option<&Path>, last: Last) -> Result<ResolvedPath, PathError> {
    let path = absolute(given, workspace, home)?;
    let names_directory = given.ends_with('/') || matches!(given.rsplit('/').next(), Some("." | ".."));
    let last = if names_directory { Last::Followed } else { last };
    let mut walk = PathWalk { real: PathBuf::from("/"), kind: PathKind::Directory, pending: Vec::new(), links: 0, last };
    walk.queue(&path);
    while let Some(name) = walk.pending.pop() {
        walk.step(&name, &path)?;
    }
    if names_directory && matches!(walk.kind, PathKind::File { .. } | PathKind::Special) {
        return Err(PathError::NotADirectory(walk.real));
    }
    Ok(ResolvedPath { real: walk.real, kind: walk.kind, names_directory, through_links: walk.links > 0 })
}

/// State while a path is being resolved.
struct PathWalk {
    real: PathBuf,
    kind: PathKind,
    /// Names that are still to be resolved, in reverse order.
    pending: Vec<OsString>,
    links: usize,
    last: Last,
}

impl PathWalk {
    fn queue(&mut self, path: &Path) {
        let names = path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        });
        self.pending.extend(names);
    }

    fn step(&mut self, name: &OsStr, whole: &Path) -> Result<(), PathError> {
        if matches!(self.kind, PathKind::File { .. } | PathKind::Special | PathKind::Link { .. }) {
            return Err(PathError::NotADirectory(self.real.clone()));
        }
        if name == ".." {
            self.real.pop();
            self.kind = stat_entry(&self.real)?.map_or(PathKind::Missing, |metadata| kind_from_metadata(&metadata));
            return Ok(());
        }
        let next = self.real.join(name);
        if self.kind == PathKind::Missing {
            self.real = next;
            return Ok(());
        }
        match stat_entry(&next)? {
            Some(metadata) if metadata.file_type().is_symlink() => {
                // This is the last component only if earlier symlinks have left no components to resolve.
                if self.last == Last::Kept && self.pending.is_empty() {
                    self.kind = PathKind::Link { bytes: metadata.len() };
                    self.real = next;
                    return Ok(());
                }
                self.follow(&next, whole)
            }
            Some(metadata) => {
                self.kind = kind_from_metadata(&metadata);
                self.real = next;
                Ok(())
            }
            None => {
                self.kind = PathKind::Missing;
                self.real = next;
                Ok(())
            }
        }
    }

    fn follow(&mut self, link: &Path, whole: &Path) -> Result<(), PathError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(PathError::Loop(whole.to_owned()));
        }
        if is_magic(link) {
            return Err(PathError::Magic(link.to_owned()));
        }
        let target = std::fs::read_link(link).map_err(|error| path_error(link, &error))?;
        if target.is_absolute() {
            self.real = PathBuf::from("/");
        }
        self.queue(&target);
        Ok(())
    }
}

/// Returns whether a symlink is one of those that lead to a kernel object whatever their text: `/proc/PID/cwd`, `root`,
/// `exe` or `fd/N`.
fn is_magic(link: &Path) -> bool {
    link.strip_prefix("/proc").is_ok_and(|below| below.components().count() > 1)
}

/// Returns the metadata of the entry at `path` without following a symlink, or `None` if it does not exist.
fn stat_entry(path: &Path) -> Result<Option<Metadata>, PathError> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(path_error(path, &error)),
    }
}

fn path_error(path: &Path, error: &std::io::Error) -> PathError {
    match error.kind() {
        ErrorKind::PermissionDenied => PathError::Denied(path.to_owned()),
        ErrorKind::InvalidFilename => PathError::TooLong,
        ErrorKind::NotADirectory => PathError::NotADirectory(path.parent().unwrap_or(path).to_owned()),
        _ => PathError::Unreadable { path: path.to_owned(), message: error.to_string() },
    }
}

fn kind_from_metadata(metadata: &Metadata) -> PathKind {
    if metadata.is_dir() {
        PathKind::Directory
    } else if metadata.is_file() {
        PathKind::File { bytes: metadata.len() }
    } else {
        PathKind::Special
    }
}
