//! Rename detection: finds new files that are deleted files moved to another path.

use super::compare::same_bytes;
use super::{Change, Changes, Node, NodeKind, Time};
use crate::sys::path::{open_below, pass_below};
use nix::fcntl::{OFlag, readlinkat};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum number of bytes to read for comparisons. Beyond this limit, a move is shown as a new file and a deleted one.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum number of deleted files to compare with each new file.
const MAX_TRIES: usize = 8;

/// Marks a new file as moved if its content is that of a deleted file. Among several candidates, one with the same time
/// and name is preferred.
pub(super) fn find(changes: &mut Changes, upper: &OwnedFd, lower: &OwnedFd) -> io::Result<()> {
    let entries = &changes.entries;
    let mut deleted: HashMap<(NodeKind, u64), Candidates<'_>> = HashMap::new();
    for (index, change) in entries.iter().enumerate() {
        if let (Some(before), None, Some(name)) = (change.before, change.after, change.path.file_name())
            && is_moved_kind(before.kind, before.bytes)
        {
            deleted.entry((before.kind, before.bytes)).or_default().insert(before.modified, name, index);
        }
    }
    if deleted.is_empty() {
        return Ok(());
    }
    let mut bytes_left = MAX_BYTES;
    let mut moves = Vec::new();
    for (index, change) in entries.iter().enumerate() {
        let (None, Some(after), None, Some(name)) = (change.before, change.after, &change.link_of, change.path.file_name())
        else {
            continue;
        };
        if !is_moved_kind(after.kind, after.bytes) {
            continue;
        }
        let Some(candidates) = deleted.get_mut(&(after.kind, after.bytes)) else { continue };
        for candidate in candidates.best(after.modified, name) {
            let old = &entries[candidate];
            let same = match (change.written, old.content) {
                (Some(new), Some(old)) => new == old,
                _ if after.bytes > bytes_left => break,
                _ => {
                    bytes_left -= after.bytes;
                    is_same(after, (upper, &change.path), (lower, &old.path))?
                }
            };
            if let (true, Some(before), Some(name)) = (same, old.before, old.path.file_name()) {
                candidates.remove(before.modified, name, candidate);
                moves.push((index, candidate));
                break;
            }
        }
    }
    for (index, from) in moves {
        changes.entries[index].moved_from = Some(changes.entries[from].path.clone());
    }
    Ok(())
}

/// Indexes of the deleted entries that have the same kind and size. A lookup takes about the same time however many
/// there are.
#[derive(Default)]
struct Candidates<'a> {
    by_time: BTreeSet<(Time, &'a OsStr, usize)>,
    by_name: BTreeSet<(&'a OsStr, usize)>,
}

impl<'a> Candidates<'a> {
    fn insert(&mut self, modified: Time, name: &'a OsStr, index: usize) {
        self.by_time.insert((modified, name, index));
        self.by_name.insert((name, index));
    }

    fn remove(&mut self, modified: Time, name: &'a OsStr, index: usize) {
        self.by_time.remove(&(modified, name, index));
        self.by_name.remove(&(name, index));
    }

    /// Returns the entries to compare, in this order: same time and name, same time, same name, any others.
    fn best(&self, modified: Time, name: &'a OsStr) -> Vec<usize> {
        let both = self.by_time.range((modified, name, 0)..=(modified, name, usize::MAX));
        let time = self.by_time.range((modified, OsStr::new(""), 0)..).take_while(|(time, ..)| *time == modified);
        let named = self.by_name.range((name, 0)..=(name, usize::MAX)).map(|(_, index)| *index);
        let index = |(_, _, index): &(Time, &OsStr, usize)| *index;
        let ranked = both.chain(time).map(index).chain(named).chain(self.by_time.iter().map(index));
        let mut best = Vec::with_capacity(MAX_TRIES);
        for index in ranked {
            if best.len() == MAX_TRIES {
                break;
            }
            if !best.contains(&index) {
                best.push(index);
            }
        }
        best
    }
}

/// Returns whether a move of such an entry can be detected. Moves of empty files cannot, because all empty files are
/// equal.
fn is_moved_kind(kind: NodeKind, bytes: u64) -> bool {
    match kind {
        NodeKind::File => bytes > 0,
        NodeKind::Link => true,
        NodeKind::Directory | NodeKind::Special => false,
    }
}

fn is_same(after: Node, new: (&OwnedFd, &Path), old: (&OwnedFd, &Path)) -> io::Result<bool> {
    if after.kind == NodeKind::Link {
        let says = |(root, path): (&OwnedFd, &Path)| {
            let directory = pass_below(root, path.parent().unwrap_or(Path::new(""))).ok()?;
            readlinkat(&directory, path.file_name()?).ok()
        };
        return Ok(says(new) == says(old));
    }
    let open = |(root, path): (&OwnedFd, &Path)| open_below(root, path, OFlag::O_RDONLY | OFlag::O_NONBLOCK).map(File::from);
    match (open(new), open(old)) {
        (Ok(mut new), Ok(mut old)) => same_bytes(&mut new, &mut old, after.bytes),
        _ => Ok(false),
    }
}

impl Changes {
    /// Returns the renamed directories as pairs of old and new paths. Every entry of the old directory must be at the
    /// same relative path in the new one, which must contain no other entries.
    pub(crate) fn moved_directories(&self) -> Vec<(PathBuf, PathBuf)> {
        if self.entries.iter().all(|change| change.moved_from.is_none()) {
            return Vec::new();
        }
        let at = |path: &Path| {
            let found = self.entries.binary_search_by(|change| change.path.as_path().cmp(path));
            found.ok().map(|at| &self.entries[at])
        };
        let inside = |path: &Path| match self.below(path) {
            [first, rest @ ..] if first.path == path => rest,
            all => all,
        };
        let is_directory = |change: Option<&Change>, new: bool| {
            change.is_some_and(|change| match (change.before, change.after) {
                (None, Some(node)) => new && node.kind == NodeKind::Directory,
                (Some(node), None) => !new && node.kind == NodeKind::Directory,
                _ => false,
            })
        };
        let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
        for change in &self.entries {
            if !is_directory(Some(change), true) || found.last().is_some_and(|(_, to)| change.path.starts_with(to)) {
                continue;
            }
            let is = inside(&change.path);
            let Some((first, old)) = is.iter().find_map(|is| Some((is, is.moved_from.as_ref()?))) else { continue };
            let Ok(rest) = first.path.strip_prefix(&change.path) else { continue };
            let Some(from) = old.ancestors().nth(rest.components().count()) else { continue };
            let was = inside(from);
            let fits = from.join(rest) == *old
                && is_directory(at(from), false)
                && was.len() == is.len()
                && was.iter().zip(is).all(|(was, is)| {
                    was.path.strip_prefix(from).ok() == is.path.strip_prefix(&change.path).ok()
                        && (is.moved_from.as_ref() == Some(&was.path) || was.is_plain_end() && is.is_plain_end())
                });
            if fits {
                found.push((from.to_owned(), change.path.clone()));
            }
        }
        found
    }
}

impl Change {
    /// Returns whether the change affects a directory or an empty file, whose moves are not detected.
    fn is_plain_end(&self) -> bool {
        self.before
            .or(self.after)
            .is_some_and(|node| node.kind == NodeKind::Directory || (node.kind == NodeKind::File && node.bytes == 0))
    }
}
