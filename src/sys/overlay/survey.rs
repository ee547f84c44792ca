//! Surveys an upper directory and compares it with the real directory.
//!
//! The time this takes depends on the number of changes. In the real directory, only deleted directories are listed.

use super::content;
use super::node::{Node, NodeKind, Time};
use super::progress::{Progress, ProgressHook, Stage};
use super::{Change, Changes, LayeredDirectory, MAX_ENTRIES, RefusalReason, RefusedChange, VisitedDirectory, renames, xattr};
use crate::sys::file::tree::names;
use crate::sys::parallel::{self, CHUNK_ITEMS};
use crate::sys::path::{open_below, open_directory};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmodat, fstat, fstatat};
use nix::unistd::AccessFlags;
use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const LISTING: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY);
/// Name of the file whose change time records when the view was created.
const MARK: &str = "began";
/// Mode that the survey gives to directories in the upper directory that are not readable.
pub(super) const OPENED: u32 = 0o700;
/// Number of entries whose states are in memory at a time, so the limit on changes also limits memory use.
const WINDOW_ITEMS: usize = 64 * CHUNK_ITEMS;
/// Tolerated difference between the clocks of file systems.
const TICK: Duration = Duration::from_secs(1);

/// Returns the current time according to the file system that contains `directory`. Any later change has a later time.
/// Must be called before the view is created.
pub(crate) fn mark(directory: &Path) -> io::Result<Time> {
    let parent = open_directory(directory)?;
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = openat(&parent, MARK, flags, Mode::from_bits_truncate(0o600))?;
    Ok(Node::from_stat(&fstat(&file)?).changed)
}

/// Returns the time that [`mark`] returned for this directory, or `None` if it was not called.
pub(crate) fn marked(directory: &Path) -> Option<Time> {
    let parent = open_directory(directory).ok()?;
    let node = Node::at(&parent, OsStr::new(MARK)).ok()??;
    (node.kind == NodeKind::File).then_some(node.changed)
}

/// Returns the changes that the command has made in one directory since `began`. The only side effect is that
/// unreadable directories in the upper directory become readable, which `Changes::restore_modes_from` corrects in the
/// result of the next survey.
pub(crate) fn changes(layered: &LayeredDirectory, began: Time) -> io::Result<Changes> {
    changes_with_progress(layered, began, &|_| {})
}

/// Returns the same as `changes`. `progress` is called for each change that is found, and for every few that are
/// compared.
pub(crate) fn changes_with_progress(layered: &LayeredDirectory, began: Time, progress: ProgressHook<'_>) -> io::Result<Changes> {
    let (upper, lower) = (open_directory(&layered.upper)?, open_directory(&layered.directory)?);
    let now = SystemTime::now().checked_add(TICK).and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let root = Node::from_stat(&fstat(&lower)?);
    let mut walk = Walk {
        upper,
        lower,
        pending: Vec::new(),
        progress,
        changes: Changes {
            layered: layered.clone(),
            began,
            surveyed: Time(now.as_secs() as i64, i64::from(now.subsec_nanos())),
            root,
            entries: Vec::new(),
            unkept: Vec::new(),
            passed: Vec::new(),
        },
    };
    walk.walk_all()?;
    let Walk { upper, lower, mut changes, .. } = walk;
    changes.entries.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    content::compare(&mut changes.entries, &upper, &lower, progress)?;
    name_links(&mut changes.entries);
    drop_unchanged(&mut changes);
    renames::find(&mut changes, &upper, &lower)?;
    keep_attributes_of_moved(&mut changes.entries, &upper, &lower);
    let unkept: BTreeSet<PathBuf> = changes
        .unkept
        .iter()
        .filter(|unkept| !matches!(unkept.why, RefusalReason::SetId | RefusalReason::Attributes))
        .map(|unkept| unkept.path.clone())
        .collect();
    let more = changes.without(&unkept);
    changes.unkept.extend(more.into_iter().map(|(path, because)| RefusedChange { path, why: RefusalReason::With(because) }));
    changes.unkept.sort_unstable_by(|left, right| left.path.cmp(&right.path));
    Ok(changes)
}

/// How much of the real directory is visible through a directory in the upper directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    /// Every entry of the real directory, unless the upper directory has an entry with the same name.
    Seen,
    /// No entries, although the real directory exists.
    Hidden,
    /// The real directory does not exist.
    Nothing,
}

struct Walk<'a> {
    upper: OwnedFd,
    lower: OwnedFd,
    pending: Vec<(PathBuf, Below)>,
    progress: ProgressHook<'a>,
    changes: Changes,
}

impl Walk<'_> {
    fn walk_all(&mut self) -> io::Result<()> {
        let opaque = xattr::is_opaque(&self.upper);
        self.changes.passed.push(VisitedDirectory {
            path: PathBuf::new(),
            node: self.changes.root,
            emptied: opaque,
            replaced: false,
        });
        self.pending.push((PathBuf::new(), if opaque { Below::Hidden } else { Below::Seen }));
        while let Some((path, below)) = self.pending.pop() {
            self.directory(&path, below)?;
        }
        Ok(())
    }

    fn directory(&mut self, path: &Path, below: Below) -> io::Result<()> {
        let upper = match self.open_upper(path) {
            Ok(upper) => upper,
            Err(Errno::ENAMETOOLONG) => {
                self.unkept(path.to_owned(), RefusalReason::TooDeep);
                return Ok(());
            }
            Err(errno) => return Err(errno.into()),
        };
        let lower = match below {
            Below::Nothing => None,
            Below::Seen | Below::Hidden => match self.open_lower(path)? {
                Some(lower) => Some(lower),
                None => return Ok(()),
            },
        };
        let here = names(&upper)?;
        for window in here.chunks(WINDOW_ITEMS) {
            for (name, state) in window.iter().zip(entry_states(window, &upper, lower.as_ref())) {
                self.entry((&upper, lower.as_ref()), name, path.join(name), state?, below)?;
            }
        }
        if below == Below::Hidden {
            self.record_hidden(path, &here.into_iter().collect())?;
        }
        Ok(())
    }

    /// Records the deletion of entries in the real directory that the command no longer sees.
    fn record_hidden(&mut self, path: &Path, covered: &BTreeSet<OsString>) -> io::Result<()> {
        let Some(lower) = self.open_lower(path)? else { return Ok(()) };
        for name in names(&lower)?.iter().filter(|name| !covered.contains(*name)) {
            if let Some(before) = Node::at(&lower, name)? {
                self.record_deletion(path.join(name), before)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        (upper, lower): (&OwnedFd, Option<&OwnedFd>),
        name: &OsStr,
        path: PathBuf,
        EntryState { before, after }: EntryState,
        below: Below,
    ) -> io::Result<()> {
        let Some(mut after) = after else {
            return before.map_or(Ok(()), |before| self.record_deletion(path, before));
        };
        match after.kind {
            NodeKind::Special => self.unkept(path, RefusalReason::Special),
            NodeKind::Directory => {
                let old = before.filter(|before| before.kind == NodeKind::Directory).and(lower).map(|lower| (lower, name));
                let attributes = xattr::differ((upper, name), old);
                if attributes {
                    after.mode = xattr::mode_without_list((upper, name), old, after.mode);
                    self.unkept(path.clone(), RefusalReason::Attributes);
                }
                return self.directory_entry(path, before, after, below);
            }
            NodeKind::File | NodeKind::Link => {
                if before.is_some_and(|before| before.kind == NodeKind::Directory) {
                    self.record_deletions_below(&path)?;
                }
                return self.push(change(path, before, Some(after), false));
            }
        }
        Ok(())
    }

    fn directory_entry(&mut self, path: PathBuf, before: Option<Node>, after: Node, below: Below) -> io::Result<()> {
        let Some(before) = before.filter(|before| before.kind == NodeKind::Directory) else {
            self.push(change(path.clone(), before, Some(after), false))?;
            self.pending.push((path, Below::Nothing));
            return Ok(());
        };
        let opaque = below == Below::Hidden || self.open_upper(&path).is_ok_and(|directory| xattr::is_opaque(&directory));
        let replaced = self.is_from_run(&before) && self.is_refilled(&path);
        self.changes.passed.push(VisitedDirectory { path: path.clone(), node: before, emptied: opaque, replaced });
        if before.mode != after.mode || before.owners() != after.owners() {
            self.push(change(path.clone(), Some(before), Some(after), true))?;
        }
        self.pending.push((path, if opaque { Below::Hidden } else { Below::Seen }));
        Ok(())
    }

    /// Returns whether the directory changed after the command began. Its change time, unlike its entries, also changes
    /// when the directory is created or renamed.
    fn is_from_run(&self, node: &Node) -> bool {
        node.changed > self.changes.began
    }

    /// Returns whether the parent directory changed after the command began. If so, the path may now lead to a
    /// different directory than the one that the command used.
    fn is_refilled(&self, path: &Path) -> bool {
        let above = open_below(&self.lower, path.parent().unwrap_or(Path::new("")), LISTING);
        above.ok().and_then(|above| fstat(&above).ok()).is_none_or(|stat| Node::from_stat(&stat).modified > self.changes.began)
    }

    /// Records the deletion of a path and of everything below it.
    fn record_deletion(&mut self, path: PathBuf, before: Node) -> io::Result<()> {
        let mut pending = vec![(path, before)];
        while let Some((path, before)) = pending.pop() {
            if before.kind == NodeKind::Directory {
                self.list_below(&path, &mut pending)?;
            }
            self.push(change(path, Some(before), None, false))?;
        }
        Ok(())
    }

    fn record_deletions_below(&mut self, path: &Path) -> io::Result<()> {
        let mut pending = Vec::new();
        self.list_below(path, &mut pending)?;
        for (path, before) in pending {
            self.record_deletion(path, before)?;
        }
        Ok(())
    }

    fn list_below(&mut self, path: &Path, found: &mut Vec<(PathBuf, Node)>) -> io::Result<()> {
        let Some(directory) = self.open_lower(path)? else { return Ok(()) };
        let here = names(&directory)?;
        for window in here.chunks(WINDOW_ITEMS) {
            for (name, node) in window.iter().zip(for_each_name(window, |name| Node::at(&directory, name))) {
                found.extend(node?.map(|node| (path.join(name), node)));
            }
            self.check_count(found.len())?;
        }
        Ok(())
    }

    /// Opens a directory in the real tree. It must be possible to look up its entries, and not only to list them.
    fn open_lower(&mut self, path: &Path) -> io::Result<Option<OwnedFd>> {
        let why = match open_below(&self.lower, path, LISTING) {
            Ok(directory) if can_traverse(&directory) => return Ok(Some(directory)),
            Ok(_) | Err(Errno::EACCES) => RefusalReason::Closed,
            Err(Errno::ENAMETOOLONG) => RefusalReason::TooDeep,
            Err(errno) => return Err(errno.into()),
        };
        self.unkept(path.to_owned(), why);
        Ok(None)
    }

    /// Opens a directory in the upper tree even if its mode does not permit that, since it belongs to the user.
    fn open_upper(&self, path: &Path) -> nix::Result<OwnedFd> {
        match open_below(&self.upper, path, LISTING) {
            Ok(directory) if !can_traverse(&directory) => {}
            Err(Errno::EACCES) => {}
            opened => return opened,
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::EACCES) };
        let parent = self.open_upper(parent)?;
        fchmodat(&parent, name, Mode::S_IRWXU, FchmodatFlags::NoFollowSymlink)?;
        open_below(&self.upper, path, LISTING)
    }

    fn push(&mut self, change: Change) -> io::Result<()> {
        self.check_count(1)?;
        self.changes.entries.push(change);
        (self.progress)(Progress { stage: Stage::Listing, done: self.changes.entries.len(), total: None });
        Ok(())
    }

    /// Returns an error if this many further changes would exceed the limit.
    fn check_count(&self, more: usize) -> io::Result<()> {
        if self.changes.entries.len() + more > MAX_ENTRIES {
            return Err(io::Error::other(format!("the command changed more than {MAX_ENTRIES} files; run it without a preview")));
        }
        Ok(())
    }

    fn unkept(&mut self, path: PathBuf, why: RefusalReason) {
        self.changes.unkept.push(RefusedChange { path, why });
    }
}

/// State of an entry before and after the command.
struct EntryState {
    before: Option<Node>,
    /// State in the upper directory, or `None` if the entry was deleted.
    after: Option<Node>,
}

/// Reads the states of these directory entries, in the same order.
fn entry_states(names: &[OsString], upper: &OwnedFd, lower: Option<&OwnedFd>) -> impl Iterator<Item = nix::Result<EntryState>> {
    for_each_name(names, move |name| {
        let before = lower.map_or(Ok(None), |lower| Node::at(lower, name))?;
        let stat = fstatat(upper, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(EntryState { before, after: (!is_whiteout(&stat)).then(|| Node::from_stat(&stat)) })
    })
}

/// Applies `read` to each directory entry, using several threads if there are many.
fn for_each_name<T: Send>(
    names: &[OsString],
    read: impl Fn(&OsStr) -> nix::Result<T> + Sync,
) -> impl Iterator<Item = nix::Result<T>> {
    let read_all = |names: &[OsString]| names.iter().map(|name| read(name)).collect::<Vec<_>>();
    parallel::map(names.chunks(CHUNK_ITEMS), read_all).into_iter().flatten()
}

/// Compares the attributes of moved files with those at their old paths, rather than with those at their new ones.
fn keep_attributes_of_moved(entries: &mut [Change], upper: &OwnedFd, lower: &OwnedFd) {
    for change in entries.iter_mut().filter(|change| change.lost_attributes) {
        let Some(from) = &change.moved_from else { continue };
        let at = |root: &OwnedFd, path: &Path| open_below(root, path.parent().unwrap_or(Path::new("")), LISTING).ok();
        let (Some(new), Some(old)) = (at(upper, &change.path), at(lower, from)) else { continue };
        if let (Some(name), Some(old_name)) = (change.path.file_name(), from.file_name()) {
            change.lost_attributes = xattr::differ((&new, name), Some((&old, old_name)));
        }
    }
}

/// Returns whether a directory's entries can be accessed, not only listed. Without that permission, looking up `.`
/// fails.
fn can_traverse(directory: &OwnedFd) -> bool {
    nix::unistd::faccessat(directory, ".", AccessFlags::X_OK, AtFlags::AT_EACCESS).is_ok()
}

fn change(path: PathBuf, before: Option<Node>, after: Option<Node>, same_content: bool) -> Change {
    Change {
        path,
        before,
        content: None,
        written: None,
        after,
        same_content,
        link_of: None,
        moved_from: None,
        lost_set_id: false,
        lost_attributes: false,
    }
}

/// Returns whether an entry is a whiteout: a device with the number 0:0, by which overlayfs marks a deletion.
fn is_whiteout(stat: &FileStat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFCHR && stat.st_rdev == 0
}

fn is_as_it_was(before: &Node, after: &Node) -> bool {
    let same = before.owners() == after.owners();
    same && (after.kind == NodeKind::Link || (before.mode, before.modified) == (after.mode, after.modified))
}

/// Removes entries that the command left unchanged. If it set attributes on them, that is recorded as a change that is
/// not applied.
fn drop_unchanged(changes: &mut Changes) {
    let unkept = &mut changes.unkept;
    changes.entries.retain(|change| {
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return true };
        let is_plain = matches!(after.kind, NodeKind::File | NodeKind::Link);
        if !(is_plain && change.same_content && is_as_it_was(before, after)) {
            return true;
        }
        let refuse = |why| RefusedChange { path: change.path.clone(), why };
        unkept.extend(change.lost_set_id.then(|| refuse(RefusalReason::SetId)));
        unkept.extend(change.lost_attributes.then(|| refuse(RefusalReason::Attributes)));
        false
    });
}

/// Chooses a leading path for each file with several hard links, preferably one that already had the content. The
/// file's other paths become hard links to it.
fn name_links(entries: &mut [Change]) {
    // Paths of each file in the upper directory with several hard links, and whether the content at the path is
    // unchanged.
    let mut groups: HashMap<u64, Vec<(PathBuf, bool)>> = HashMap::new();
    for change in entries.iter() {
        if let Some(after) = change.after.filter(|after| after.kind == NodeKind::File && after.links > 1) {
            groups.entry(after.inode).or_default().push((change.path.clone(), change.same_content));
        }
    }
    if groups.is_empty() {
        return;
    }
    let mut leaders: HashMap<PathBuf, PathBuf> = HashMap::new();
    for mut names in groups.into_values().filter(|names| names.len() > 1) {
        names.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        let (leader, _) = names[0].clone();
        let others = names.into_iter().skip(1).filter(|(_, same)| !same);
        leaders.extend(others.map(|(path, _)| (path, leader.clone())));
    }
    for entry in entries.iter_mut() {
        entry.link_of = leaders.remove(&entry.path);
    }
}
