//! Performs the planned steps. Each step first checks whether it has already been done and whether its target is
//! unchanged.

use super::journal::{CommitJournal, JournalRoot};
use super::node::{Node, NodeKind, Time};
use super::outcome::{CommitOutcome, LeftoverPath, is_full};
use super::plan::{Source, Step, StepAction};
use super::progress::{ProgressCounter, ProgressHook, Stage};
use super::staging::{MAX_SINGLE_SYNCS, stage_name, sync_all, sync_names};
use crate::sys::file::tree::rename_to_new;
use crate::sys::path::{open_directory, pass_below};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, renameat};
use nix::sys::stat::{FchmodatFlags, Mode, UtimensatFlags, fchmodat, fstat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchownat, linkat, unlinkat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Hook that is called before each change, with which tests inject failures. A system error counts as a failure of the
/// change. Any other error aborts the commit immediately, as a crash would.
pub(super) type FaultHook<'a> = &'a mut dyn FnMut() -> io::Result<()>;

/// Hooks called during a commit.
pub(super) struct CommitHooks<'a> {
    pub pace: FaultHook<'a>,
    pub progress: ProgressHook<'a>,
}

const CHANGED: &str = "the file changed in the meantime; it was left unchanged";
const TAKEN: &str = "another file was created at this path in the meantime; it was left unchanged";
const LOST: &str = "the parent directory does not exist";

/// Why a step was not performed.
enum SkipReason {
    /// Another program changed the path, so the step can never be performed.
    Foreign(&'static str),
    Failed(io::Error),
}

impl SkipReason {
    /// Converts the reason to an entry in the list of leftover paths. A system error may be temporary, while a change
    /// by another program is permanent.
    fn to_leftover(&self, path: PathBuf) -> LeftoverPath {
        match self {
            Self::Foreign(why) => LeftoverPath { path, why: (*why).to_owned(), later: false, is_full: false },
            Self::Failed(error) => LeftoverPath { path, why: error.to_string(), later: true, is_full: is_full(error) },
        }
    }
}

impl From<Errno> for SkipReason {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno.into())
    }
}

impl From<io::Error> for SkipReason {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Performs all steps. The outcome lists those that failed, whether temporarily or permanently. Returns an error only
/// if the hook aborts the commit.
pub(super) fn apply(journal: &CommitJournal, hooks: &mut CommitHooks<'_>) -> io::Result<CommitOutcome> {
    let mut outcome = CommitOutcome::default();
    let files = journal.steps().filter(|step| step.is_of_file()).count();
    let mut counter = ProgressCounter::new(hooks.progress, Stage::Applying, files);
    for root in &journal.roots {
        match Work::open(root) {
            Ok(mut work) => work.apply_all(&mut outcome, hooks.pace, &mut counter)?,
            Err(not) => outcome.left.push(not.to_leftover(root.directory.clone())),
        }
    }
    Ok(outcome)
}

struct Work<'a> {
    root: &'a JournalRoot,
    directory: OwnedFd,
    upper: OwnedFd,
    stage: OwnedFd,
    /// Parent directory used by the last step, cached because the next step is usually in the same directory.
    parent: Option<(PathBuf, OwnedFd)>,
}

impl<'a> Work<'a> {
    fn open(root: &'a JournalRoot) -> Result<Self, SkipReason> {
        let directory = open_directory(&root.directory)?;
        if fstat(&directory)?.st_ino != root.inode {
            return Err(SkipReason::Foreign("the directory was replaced by another directory"));
        }
        let (upper, stage) = (open_directory(&root.upper)?, open_directory(&root.stage)?);
        Ok(Self { root, directory, upper, stage, parent: None })
    }

    fn apply_all(
        &mut self,
        outcome: &mut CommitOutcome,
        pace: FaultHook<'_>,
        counter: &mut ProgressCounter<'_>,
    ) -> io::Result<()> {
        self.reopen();
        // Failed directories, with whether they can be retried later. If so, the steps below them are retried later
        // too.
        let mut failed: BTreeMap<PathBuf, bool> = BTreeMap::new();
        let mut changed: BTreeSet<&Path> = BTreeSet::new();
        let mut count = |step: &Step| {
            if step.is_of_file() {
                counter.add_one();
            }
        };
        for step in &self.root.steps {
            let builds = !matches!(step.what, StepAction::Open { .. } | StepAction::Remove { .. });
            if builds && let Some(later) = step.path.ancestors().find_map(|above| failed.get(above).copied()) {
                if !failed.contains_key(&step.path) {
                    let path = self.root.directory.join(&step.path);
                    outcome.left.push(LeftoverPath { path, why: LOST.to_owned(), later, is_full: false });
                }
                count(step);
                continue;
            }
            match at_pace(pace).and_then(|()| self.step(step, pace)) {
                Ok(()) => {
                    outcome.done += 1;
                    changed.extend(step.path.parent());
                }
                Err(ApplyStop::Now(error)) => return Err(error),
                Err(ApplyStop::Not(not)) => {
                    let left = not.to_leftover(self.root.directory.join(&step.path));
                    failed.insert(step.path.clone(), left.later);
                    outcome.left.push(left);
                }
            }
            count(step);
        }
        match at_pace(pace).and_then(|()| Ok(self.sync_names(&changed).map_err(SkipReason::from)?)) {
            Ok(()) => {}
            Err(ApplyStop::Now(error)) => return Err(error),
            Err(ApplyStop::Not(not)) => outcome.left.push(not.to_leftover(self.root.directory.clone())),
        }
        Ok(())
    }

    /// Makes directories writable again to which an earlier attempt had already given their final mode. Their last step
    /// then sets that mode again.
    fn reopen(&mut self) {
        if Uid::effective().is_root() {
            return;
        }
        // Start at the outermost directory. The last steps are in the opposite order.
        for step in self.root.steps.iter().rev() {
            let StepAction::Dress { before, number, mode, .. } = &step.what else { continue };
            let (Some(name), Some(above)) = (step.path.file_name(), step.path.parent()) else { continue };
            if mode & 0o700 == 0o700 || self.enter_directory(above).is_err() {
                continue;
            }
            let Some((_, parent)) = &self.parent else { continue };
            let Ok(Some(now)) = Node::at(parent, name) else { continue };
            let made = number.is_some() && self.was_placed(&step.path);
            let ours = made || before.is_some_and(|before| before.inode == now.inode);
            if ours && now.kind == NodeKind::Directory && now.mode == *mode {
                let _ = open_up(parent, name, Some(now), now.inode);
            }
        }
    }

    /// Syncs directory entries to disk, so that the changes can be reported as done.
    fn sync_names(&self, changed: &BTreeSet<&Path>) -> io::Result<()> {
        if changed.len() > MAX_SINGLE_SYNCS {
            return sync_all(&self.directory);
        }
        for path in changed {
            if let Ok(directory) = pass_below(&self.directory, path) {
                sync_names(&directory)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, pace: FaultHook<'_>) -> Result<(), ApplyStop> {
        if let (StepAction::Open { .. } | StepAction::Dress { .. }, None) = (&step.what, step.path.file_name()) {
            return Ok(self.apply_to_root(&step.what)?);
        }
        let Some(name) = step.path.file_name() else { return Ok(()) };
        match self.enter_directory(step.path.parent().unwrap_or(Path::new(""))) {
            Ok(()) => {}
            // If the parent directory was removed, the entry was removed too.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) if matches!(step.what, StepAction::Remove { .. }) => return Ok(()),
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Err(SkipReason::Foreign(LOST).into()),
            Err(errno) => return Err(SkipReason::from(errno).into()),
        }
        let Some((_, parent)) = &self.parent else { return Ok(()) };
        let now = Node::at(parent, name).map_err(SkipReason::from)?;
        match &step.what {
            StepAction::Open { inode } => Ok(open_up(parent, name, now, *inode)?),
            StepAction::Remove { before } => {
                self.remove((parent, name), before, now, &step.path)?;
                self.forget_below(&step.path);
                Ok(())
            }
            StepAction::Directory { number } => Ok(place_entry((&self.stage, &stage_name(*number)), (parent, name), None, now)?),
            StepAction::Place { source: Source::Staged(number), before } => {
                Ok(place_entry((&self.stage, &stage_name(*number)), (parent, name), before.as_ref(), now)?)
            }
            StepAction::Place { source: Source::Upper, before } => {
                let above = step.path.parent().unwrap_or(Path::new(""));
                let upper = pass_below(&self.upper, above).map_err(SkipReason::from)?;
                Ok(place_entry((&upper, name), (parent, name), before.as_ref(), now)?)
            }
            StepAction::Link { to, number, before } => {
                self.link(to, &stage_name(*number), (parent, name), before.as_ref(), now, pace)
            }
            StepAction::Dress { before, mode, owner, group, modified, .. } => {
                let wanted = FinalAttributes { mode: *mode, owners: (*owner, *group), modified: *modified };
                Ok(dress((parent, name), before.as_ref(), now, &wanted)?)
            }
        }
    }

    /// Performs a step on the root directory itself, which has no name within itself to look up.
    fn apply_to_root(&self, what: &StepAction) -> Result<(), SkipReason> {
        let mode = match what {
            StepAction::Open { .. } => Node::from_stat(&fstat(&self.directory)?).mode | 0o700,
            StepAction::Dress { mode, .. } => *mode,
            StepAction::Remove { .. } | StepAction::Directory { .. } | StepAction::Place { .. } | StepAction::Link { .. } => {
                return Ok(());
            }
        };
        Ok(nix::sys::stat::fchmod(&self.directory, Mode::from_bits_truncate(mode as libc::mode_t))?)
    }

    fn enter_directory(&mut self, directory: &Path) -> nix::Result<()> {
        if self.parent.as_ref().is_some_and(|(path, _)| path == directory) {
            return Ok(());
        }
        self.parent = None;
        self.parent = Some((directory.to_owned(), pass_below(&self.directory, directory)?));
        Ok(())
    }

    fn forget_below(&mut self, path: &Path) {
        self.parent = self.parent.take().filter(|(held, _)| !held.starts_with(path));
    }

    fn remove(
        &self,
        (parent, name): (&OwnedFd, &OsStr),
        before: &Node,
        now: Option<Node>,
        path: &Path,
    ) -> Result<(), SkipReason> {
        let Some(now) = now else { return Ok(()) };
        if !before.is_same_except_links(&now) {
            // Before a crash, a later step may already have created this entry.
            return if self.was_placed(path) { Ok(()) } else { Err(SkipReason::Foreign(CHANGED)) };
        }
        let flag = if now.kind == NodeKind::Directory { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir };
        match unlinkat(parent, name, flag) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => {
                Err(SkipReason::Foreign("the directory changed in the meantime; it was not deleted"))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns whether one of the steps created the entry at this path.
    fn was_placed(&self, path: &Path) -> bool {
        self.root.steps.iter().filter(|step| step.path == path).any(|step| match &step.what {
            StepAction::Directory { number } | StepAction::Place { source: Source::Staged(number), .. } => {
                Node::at(&self.stage, &stage_name(*number)).is_ok_and(|node| node.is_none())
            }
            StepAction::Place { source: Source::Upper, .. } => {
                let (above, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
                pass_below(&self.upper, above).and_then(|upper| Node::at(&upper, name)).is_ok_and(|node| node.is_none())
            }
            StepAction::Link { to, .. } => self.is_link_to(to, path),
            StepAction::Open { .. } | StepAction::Remove { .. } | StepAction::Dress { .. } => false,
        })
    }

    fn is_link_to(&self, to: &Path, path: &Path) -> bool {
        let inode = |path: &Path| {
            let parent = pass_below(&self.directory, path.parent().unwrap_or(Path::new(""))).ok()?;
            Node::at(&parent, path.file_name()?).ok()?.map(|node| node.inode)
        };
        inode(to).is_some() && inode(to) == inode(path)
    }

    /// Creates a hard link, replacing the file that `before` describes, if any.
    fn link(
        &self,
        to: &Path,
        aside: &OsStr,
        target: (&OwnedFd, &OsStr),
        before: Option<&Node>,
        now: Option<Node>,
        pace: FaultHook<'_>,
    ) -> Result<(), ApplyStop> {
        let missing = || SkipReason::Foreign("the target of the hard link does not exist");
        let leader = pass_below(&self.directory, to.parent().unwrap_or(Path::new(""))).map_err(|_| missing())?;
        let name = to.file_name().unwrap_or_default();
        let file =
            Node::at(&leader, name).map_err(SkipReason::from)?.filter(|node| node.kind == NodeKind::File).ok_or_else(missing)?;
        match (before, now) {
            (_, Some(now)) if now.inode == file.inode && now.kind == NodeKind::File => return Ok(()),
            (None, None) => {}
            (Some(before), Some(now)) if before.is_same_except_links(&now) => {}
            (None, Some(_)) => return Err(SkipReason::Foreign(TAKEN).into()),
            (Some(_), _) => return Err(SkipReason::Foreign(CHANGED).into()),
        }
        match linkat(&leader, name, &self.stage, aside, AtFlags::empty()) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(SkipReason::from(errno).into()),
        }
        at_pace(pace)?;
        let stage = (&self.stage, aside);
        let renamed =
            if before.is_some() { renameat(stage.0, stage.1, target.0, target.1) } else { rename_to_new(stage, target) };
        match renamed {
            Err(Errno::EEXIST) => Err(SkipReason::Foreign(TAKEN).into()),
            renamed => Ok(renamed.map_err(SkipReason::from)?),
        }
    }
}

fn place_entry(
    source: (&OwnedFd, &OsStr),
    target: (&OwnedFd, &OsStr),
    before: Option<&Node>,
    now: Option<Node>,
) -> Result<(), SkipReason> {
    // The source has no other link. If it does not exist, it was already moved to the target.
    if Node::at(source.0, source.1)?.is_none() {
        return Ok(());
    }
    match (before, now) {
        (None, None) => match rename_to_new(source, target) {
            Err(Errno::EEXIST) => Err(SkipReason::Foreign(TAKEN)),
            renamed => Ok(renamed?),
        },
        (None, Some(_)) => Err(SkipReason::Foreign(TAKEN)),
        (Some(before), Some(now)) if before.is_same_except_links(&now) => Ok(renameat(source.0, source.1, target.0, target.1)?),
        (Some(_), _) => Err(SkipReason::Foreign(CHANGED)),
    }
}

fn at_pace(pace: FaultHook<'_>) -> Result<(), ApplyStop> {
    match pace() {
        Err(error) if error.raw_os_error().is_some() => Err(SkipReason::Failed(error).into()),
        paced => paced.map_err(ApplyStop::Now),
    }
}

/// Why a step was aborted.
enum ApplyStop {
    Not(SkipReason),
    Now(io::Error),
}

impl From<SkipReason> for ApplyStop {
    fn from(not: SkipReason) -> Self {
        Self::Not(not)
    }
}

fn open_up(parent: &OwnedFd, name: &OsStr, now: Option<Node>, inode: u64) -> Result<(), SkipReason> {
    match now {
        Some(now) if now.inode == inode && now.kind == NodeKind::Directory => {
            let mode = Mode::from_bits_truncate((now.mode | 0o700) as libc::mode_t);
            Ok(fchmodat(parent, name, mode, FchmodatFlags::NoFollowSymlink)?)
        }
        // The directory was removed by a step before a crash, or by another program. Either way, its content was
        // removed too.
        _ => Ok(()),
    }
}

struct FinalAttributes {
    mode: u32,
    owners: (u32, u32),
    modified: Option<Time>,
}

fn dress(
    target: (&OwnedFd, &OsStr),
    before: Option<&Node>,
    now: Option<Node>,
    wanted: &FinalAttributes,
) -> Result<(), SkipReason> {
    let Some(now) = now else { return Err(SkipReason::Foreign("the file was removed in the meantime")) };
    if let Some(before) = before {
        let same = (before.kind, before.inode) == (now.kind, now.inode);
        let times = [Some(before.modified), wanted.modified];
        let same_content = now.kind == NodeKind::Directory || (now.bytes == before.bytes && times.contains(&Some(now.modified)));
        if !same || !same_content {
            return Err(SkipReason::Foreign(CHANGED));
        }
    }
    if now.kind == NodeKind::Link {
        return Err(SkipReason::Foreign(CHANGED));
    }
    if now.owners() != wanted.owners {
        let (owner, group) = (Uid::from_raw(wanted.owners.0), Gid::from_raw(wanted.owners.1));
        match fchownat(target.0, target.1, Some(owner), Some(group), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(errno) if Uid::effective().is_root() => return Err(errno.into()),
            _ => {}
        }
    }
    let mode = Mode::from_bits_truncate(wanted.mode as libc::mode_t);
    fchmodat(target.0, target.1, mode, FchmodatFlags::NoFollowSymlink)?;
    if let Some(Time(seconds, nanoseconds)) = wanted.modified {
        let modified = TimeSpec::new(seconds, nanoseconds);
        utimensat(target.0, target.1, &TimeSpec::UTIME_OMIT, &modified, UtimensatFlags::NoFollowSymlink)?;
    }
    Ok(())
}
