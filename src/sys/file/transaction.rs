//! Transactions that span several files. All changes are checked and prepared before the first rename, and a later
//! failure is rolled back.
//!
//! If the process is killed during the renames, some files are new and some are old. The replaced or removed originals
//! are then found next to them, under names that begin with `.aye-`.

#[cfg(test)]
mod tests;

use super::PreImage;
use super::attributes::keep_attributes;
use super::replace::{
    Temporary, WriteError, create_parents, current, is_same, parent_error, stat_entry, stat_if_unchanged, sync_directory,
};
use super::temporary_name::temporary_name;
use super::tree::{Survey, rename_to_new, survey};
use crate::sys::path::open_parent;
use nix::fcntl::AtFlags;
use nix::sys::stat::FileStat;
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Change to one path. Each path occurs in only one step.
pub(crate) struct Step {
    pub real: PathBuf,
    pub what: PathOperation,
}

pub(crate) enum PathOperation {
    /// Writes this content. The owner, mode and attributes are those of the file at `like` or, if `like` is `None`, of
    /// the replaced file.
    Write {
        content: Vec<u8>,
        before: PreImage,
        like: Option<PathBuf>,
        /// Whether every user who can read the file can also run it. `None` leaves the mode unchanged.
        executable: Option<bool>,
    },
    Remove {
        before: ExpectedEntry,
    },
}

/// Expected state of an entry that is to be removed.
pub(crate) enum ExpectedEntry {
    Content(PreImage),
    Entry(Box<Survey>),
}

/// Failure of a transaction: the index of the step that failed, the reason, and the paths that could not be rolled
/// back.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct TransactionFailure {
    pub step: usize,
    pub why: WriteError,
    /// Paths that could not be rolled back. They contain the new content, and their originals are next to them.
    pub left: Vec<PathBuf>,
}

/// Hook that is called before each rename, with which tests inject failures.
type FaultHook<'a> = &'a mut dyn FnMut(usize) -> Result<(), WriteError>;

/// Performs all steps or none of them. Missing directories are created.
pub(crate) fn commit(steps: &[Step]) -> Result<(), TransactionFailure> {
    commit_with_hook(steps, &mut |_| Ok(()))
}

pub(super) fn commit_with_hook(steps: &[Step], pace: FaultHook<'_>) -> Result<(), TransactionFailure> {
    let failed = |step| move |why| TransactionFailure { step, why, left: Vec::new() };
    let mut made = Vec::new();
    let mut places = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match open_step_place(step, &mut made) {
            Ok(place) => places.push(place),
            Err(why) => {
                remove_directories(&made);
                return Err(failed(index)(why));
            }
        }
    }
    let done = run_steps(steps, &places, pace);
    if done.is_err() {
        remove_directories(&made);
    } else {
        for (directory, _) in &places {
            sync_directory(directory);
        }
    }
    done
}

type Place<'a> = (OwnedFd, &'a OsStr);

/// Opens the directory that contains a step's path. Any directories created for that are added to `made`.
fn open_step_place<'a>(step: &'a Step, made: &mut Vec<PathBuf>) -> Result<Place<'a>, WriteError> {
    if matches!(&step.what, PathOperation::Write { before: PreImage::Absent, .. }) {
        let above = step.real.ancestors().skip(1);
        let missing: Vec<PathBuf> = above.take_while(|path| path.symlink_metadata().is_err()).map(Path::to_owned).collect();
        // Recorded even if creation fails halfway.
        made.extend(missing.into_iter().rev());
        create_parents(&step.real)?;
    }
    open_place(&step.real)
}

fn open_place(real: &Path) -> Result<Place<'_>, WriteError> {
    open_parent(real).map_err(|error| parent_error(real, error))
}

/// Removes the directories that were created. Only empty ones are removed, so no file that another program wrote is
/// lost.
fn remove_directories(made: &[PathBuf]) {
    for path in made.iter().rev() {
        if let Ok((directory, name)) = open_parent(path) {
            let _ = unlinkat(&directory, name, UnlinkatFlags::RemoveDir);
        }
    }
}

fn run_steps(steps: &[Step], places: &[Place<'_>], pace: FaultHook<'_>) -> Result<(), TransactionFailure> {
    let failed = |step| move |why| TransactionFailure { step, why, left: Vec::new() };
    let mut ready = Vec::new();
    for (index, (step, place)) in steps.iter().zip(places).enumerate() {
        ready.push(PreparedStep::make(step, place).map_err(failed(index))?);
    }
    // Writing the new files took time, so the old entries are checked again.
    for (index, ready) in ready.iter().enumerate() {
        ready.verify().map_err(failed(index))?;
    }
    for index in 0..ready.len() {
        let taken = pace(index).and_then(|()| ready[index].rename());
        if let Err(why) = taken {
            let left = ready[..=index].iter_mut().rev().filter_map(PreparedStep::roll_back).collect();
            return Err(TransactionFailure { step: index, why, left });
        }
    }
    ready.into_iter().for_each(PreparedStep::finish);
    Ok(())
}

/// A step for which everything but the rename is done.
struct PreparedStep<'a> {
    step: &'a Step,
    place: &'a Place<'a>,
    /// Metadata that the old entry had when the step was prepared.
    old: Option<FileStat>,
    state: State<'a>,
    /// Whether the new state has been renamed into place.
    taken: bool,
}

enum State<'a> {
    New(Temporary<'a>),
    Over(Temporary<'a>),
    Going,
    Aside(OsString),
}

impl<'a> PreparedStep<'a> {
    fn make(step: &'a Step, place: &'a Place<'a>) -> Result<Self, WriteError> {
        let (directory, name) = place;
        let (old, state) = match &step.what {
            PathOperation::Write { content, before, like, executable } => {
                let old = match before {
                    PreImage::Absent => None,
                    PreImage::Content(_) => Some(current(directory, name)?),
                };
                let dress = ContentAttributes { like: like.as_deref(), old: old.as_ref(), executable: *executable };
                let temporary = create_with_attributes(directory, content, (directory, name), &dress)?;
                (old, if old.is_some() { State::Over(temporary) } else { State::New(temporary) })
            }
            PathOperation::Remove { .. } => {
                let old = stat_entry(directory, name)?.ok_or(WriteError::Changed)?;
                faccessat(directory, ".", AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS)?;
                (Some(old), State::Going)
            }
        };
        Ok(Self { step, place, old, state, taken: false })
    }

    /// Checks that the entry has not changed since it was inspected.
    fn verify(&self) -> Result<(), WriteError> {
        let (directory, name) = self.place;
        let same = match &self.step.what {
            PathOperation::Write { before: PreImage::Content(hash), .. }
            | PathOperation::Remove { before: ExpectedEntry::Content(PreImage::Content(hash)) } => {
                return stat_if_unchanged(directory, name, hash).map(drop);
            }
            PathOperation::Write { before: PreImage::Absent, .. } => stat_entry(directory, name)?.is_none(),
            PathOperation::Remove { before: ExpectedEntry::Entry(planned) } => {
                survey(&self.step.real, &mut |_, _| {}).is_ok_and(|now| now.is_same(planned))
            }
            PathOperation::Remove { before: ExpectedEntry::Content(PreImage::Absent) } => false,
        };
        if same { Ok(()) } else { Err(WriteError::Changed) }
    }

    /// Renames the new entry into place. The old entry is kept under a temporary name until the transaction is
    /// complete.
    fn rename(&mut self) -> Result<(), WriteError> {
        let (directory, name) = self.place;
        let aside = match &mut self.state {
            State::New(temporary) => {
                temporary.take_name(name)?;
                self.taken = true;
                return Ok(());
            }
            State::Over(temporary) => {
                temporary.swap(name)?;
                temporary.name().to_owned()
            }
            State::Going => {
                let aside = temporary_name();
                rename_to_new((directory, name), (directory, &aside))?;
                self.state = State::Aside(aside.clone());
                aside
            }
            State::Aside(_) => return Ok(()),
        };
        self.taken = true;
        // Another program may have replaced or changed the file after the check.
        if self.is_old(&aside)? { Ok(()) } else { Err(WriteError::Changed) }
    }

    /// Returns whether the entry with the temporary name is the original one.
    fn is_old(&self, aside: &OsStr) -> nix::Result<bool> {
        let now = stat_entry(&self.place.0, aside)?;
        Ok(now.is_some_and(|now| self.old.is_some_and(|old| is_same(&old, &now))))
    }

    /// Rolls the step back. Returns its path if that fails.
    fn roll_back(&mut self) -> Option<PathBuf> {
        if !self.taken {
            return None;
        }
        let (directory, name) = self.place;
        let back = match &mut self.state {
            State::New(temporary) => temporary.release_name(name),
            State::Over(temporary) => temporary.swap_back(name),
            State::Going => Ok(()),
            State::Aside(aside) => rename_to_new((directory, aside), (directory, name)),
        };
        back.err().map(|_| self.step.real.clone())
    }

    /// Removes the old entry, unless another program has since written to it through an open descriptor.
    fn finish(self) {
        let (directory, _) = self.place;
        match &self.state {
            State::Over(temporary) => {
                if !self.is_old(temporary.name()).unwrap_or(false)
                    && let State::Over(temporary) = self.state
                {
                    temporary.persist();
                }
            }
            State::Aside(aside) => {
                if self.is_old(aside).unwrap_or(false) {
                    let _ = unlinkat(directory, aside.as_os_str(), UnlinkatFlags::NoRemoveDir);
                }
            }
            State::New(_) | State::Going => {}
        }
    }
}

/// Where the owner, mode and attributes of new content come from.
struct ContentAttributes<'a> {
    /// File whose attributes are used in place of the replaced file's.
    like: Option<&'a Path>,
    old: Option<&'a FileStat>,
    executable: Option<bool>,
}

impl ContentAttributes<'_> {
    fn mode(&self, mode: u32) -> u32 {
        match self.executable {
            Some(true) => mode | (mode & 0o444) >> 2,
            Some(false) => mode & !0o111,
            None => mode,
        }
    }

    fn with_mode(&self, stat: &FileStat) -> FileStat {
        let mut with_mode = *stat;
        with_mode.st_mode = self.mode(stat.st_mode);
        with_mode
    }
}

/// Creates a temporary file with the given content, owner, mode and attributes.
fn create_with_attributes<'a>(
    directory: &'a OwnedFd,
    content: &[u8],
    here: (&OwnedFd, &OsStr),
    dress: &ContentAttributes<'_>,
) -> Result<Temporary<'a>, WriteError> {
    let write = |file: &mut File| Ok::<_, WriteError>(file.write_all(content)?);
    if let Some(like) = dress.like {
        let (above, name) = open_parent(like).map_err(|error| parent_error(like, error))?;
        let stat = stat_entry(&above, name)?.ok_or(WriteError::Changed)?;
        return Temporary::create(directory, Some(&dress.with_mode(&stat)), |file| {
            write(file)?;
            keep_attributes(&above, name, file);
            Ok(())
        });
    }
    let old = dress.old.map(|old| dress.with_mode(old));
    Temporary::create(directory, old.as_ref(), |file| {
        write(file)?;
        if old.is_some() {
            keep_attributes(here.0, here.1, file);
        } else if dress.executable.is_some() {
            let mode = file.metadata()?.permissions().mode();
            file.set_permissions(Permissions::from_mode(dress.mode(mode)))?;
        }
        Ok(())
    })
}
