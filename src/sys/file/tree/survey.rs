//! Tree surveys: the number of entries and bytes in a tree, and a fingerprint of its state.

use super::{MAX_DEPTH, MAX_ENTRIES, TreeError, names, open_directory_at, parent_of};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, readlinkat};
use nix::sys::stat::{FileStat, fstatat};
use nix::unistd::{AccessFlags, faccessat};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    File,
    Directory,
    Link,
    Special,
}

impl Form {
    pub(super) fn from_stat(stat: &FileStat) -> Self {
        match stat.st_mode & libc::S_IFMT {
            libc::S_IFREG => Self::File,
            libc::S_IFDIR => Self::Directory,
            libc::S_IFLNK => Self::Link,
            _ => Self::Special,
        }
    }
}

/// State of an entry (a file, a symlink, or a directory with everything below it) at one point in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Survey {
    pub form: Form,
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// The first device, FIFO or socket found.
    pub special: Option<PathBuf>,
    /// The first directory found from which this process cannot remove entries.
    pub sealed: Option<PathBuf>,
    pub(super) identity: Identity,
    fingerprint: blake3::Hash,
}

impl Survey {
    /// Returns the number of entries below the top-level entry.
    pub(crate) fn entries(&self) -> u64 {
        (self.files + self.directories + self.links).saturating_sub(1)
    }

    /// Returns whether both surveys found the same state, that is, no entry was changed, added, removed or replaced in
    /// between.
    pub(in crate::sys) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity && self.fingerprint == other.fingerprint
    }
}

/// Surveys the entry at `real` and everything below it without following symlinks. Calls `visit` for every path.
pub(crate) fn survey(real: &Path, visit: &mut dyn FnMut(&Path, Form)) -> Result<Survey, TreeError> {
    let (parent, name) = parent_of(real)?;
    survey_at(&parent, name, real, visit)
}

pub(super) fn survey_at(
    parent: &OwnedFd,
    name: &OsStr,
    real: &Path,
    visit: &mut dyn FnMut(&Path, Form),
) -> Result<Survey, TreeError> {
    survey_as(name, (parent, name), real, visit)
}

/// Surveys an entry that currently has a temporary name. Paths are reported under its real name, `known_as`.
pub(super) fn survey_as(
    known_as: &OsStr,
    (parent, name): (&OwnedFd, &OsStr),
    real: &Path,
    visit: &mut dyn FnMut(&Path, Form),
) -> Result<Survey, TreeError> {
    let stat = stat_entry(parent, name)?;
    let mut state = State {
        survey: Survey {
            form: Form::from_stat(&stat),
            files: 0,
            directories: 0,
            links: 0,
            bytes: 0,
            special: None,
            sealed: None,
            identity: identity(&stat),
            fingerprint: blake3::hash(&[]),
        },
        hasher: blake3::Hasher::new(),
        device: stat.st_dev,
        known_as,
        visit,
    };
    state.entry(parent, name, real, &stat, 0)?;
    Ok(Survey { fingerprint: state.hasher.finalize(), ..state.survey })
}

/// Device and inode, which identify an entry whatever its name.
pub(super) type Identity = (libc::dev_t, libc::ino_t);

pub(super) fn identity(stat: &FileStat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

pub(super) fn stat_entry(parent: &OwnedFd, name: &OsStr) -> nix::Result<FileStat> {
    fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)
}

struct State<'a> {
    survey: Survey,
    hasher: blake3::Hasher,
    device: libc::dev_t,
    known_as: &'a OsStr,
    visit: &'a mut dyn FnMut(&Path, Form),
}

impl State<'_> {
    fn entry(&mut self, parent: &OwnedFd, name: &OsStr, real: &Path, stat: &FileStat, depth: usize) -> Result<(), TreeError> {
        let form = Form::from_stat(stat);
        (self.visit)(real, form);
        self.note(if depth == 0 { self.known_as } else { name }, stat, form);
        match form {
            Form::File => {
                self.survey.files += 1;
                self.survey.bytes += u64::try_from(stat.st_size).unwrap_or(0);
            }
            Form::Link => {
                self.survey.links += 1;
                self.hasher.update(readlinkat(parent, name)?.as_bytes());
            }
            Form::Special => {
                self.survey.special.get_or_insert_with(|| real.to_owned());
            }
            Form::Directory => {
                self.survey.directories += 1;
                self.directory(parent, name, real, stat, depth)?;
            }
        }
        if self.survey.entries() > MAX_ENTRIES { Err(TreeError::TooMany) } else { Ok(()) }
    }

    fn directory(&mut self, parent: &OwnedFd, name: &OsStr, real: &Path, stat: &FileStat, depth: usize) -> Result<(), TreeError> {
        if stat.st_dev != self.device {
            return Err(TreeError::OtherFileSystem(real.to_owned()));
        }
        if depth >= MAX_DEPTH {
            return Err(TreeError::TooDeep);
        }
        let directory = match open_directory_at(parent, name) {
            Ok(directory) => directory,
            Err(Errno::EACCES | Errno::EPERM) => return Err(TreeError::Sealed(real.to_owned())),
            Err(errno) => return Err(errno.into()),
        };
        let names = names(&directory)?;
        if !names.is_empty() && faccessat(&directory, ".", AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS).is_err() {
            self.survey.sealed.get_or_insert_with(|| real.to_owned());
        }
        for name in &names {
            let stat = stat_entry(&directory, name)?;
            self.entry(&directory, name, &real.join(name), &stat, depth + 1)?;
        }
        self.hasher.update(b"\0end");
        Ok(())
    }

    /// Adds the properties that must not change to the fingerprint. Directory times are omitted, because the entries
    /// themselves are compared.
    fn note(&mut self, name: &OsStr, stat: &FileStat, form: Form) {
        self.hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        self.hasher.update(&stat.st_ino.to_le_bytes()).update(&stat.st_mode.to_le_bytes());
        if form != Form::Directory {
            for number in [stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec] {
                self.hasher.update(&number.to_le_bytes());
            }
        }
    }
}
