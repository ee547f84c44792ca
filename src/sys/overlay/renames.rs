//! Rename detection: finds new files that are old files under another name.

use super::compare::same_bytes;
use super::{Change, Changes, Node, NodeKind};
use crate::sys::path::{open_below, pass_below};
use nix::fcntl::{OFlag, readlinkat};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum number of bytes read for the comparison. Beyond it, a move is shown as a new and a deleted file.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Maximum number of deleted files with which a new file is compared.
const MAX_TRIES: usize = 8;

/// Marks a new file that has the content of a deleted one as moved. Of several candidates, one with the same name is
/// preferred.
pub(super) fn find(changes: &mut Changes, upper: &OwnedFd, lower: &OwnedFd) -> io::Result<()> {
    let mut deleted: HashMap<(NodeKind, u64), Vec<usize>> = HashMap::new();
    for (index, change) in changes.entries.iter().enumerate() {
        if let (Some(before), None) = (change.before, change.after)
            && is_moved_kind(before.kind, before.bytes)
        {
            deleted.entry((before.kind, before.bytes)).or_default().push(index);
        }
    }
    if deleted.is_empty() {
        return Ok(());
    }
    let mut bytes_left = MAX_BYTES;
    for index in 0..changes.entries.len() {
        let change = &changes.entries[index];
        let (None, Some(after), None) = (change.before, change.after, &change.link_of) else { continue };
        if !is_moved_kind(after.kind, after.bytes) {
            continue;
        }
        let Some(candidates) = deleted.get_mut(&(after.kind, after.bytes)) else { continue };
        let name = change.path.file_name();
        let rank = |candidate: &usize| {
            let old = &changes.entries[*candidate];
            (old.before.map(|node| node.modified) != Some(after.modified), old.path.file_name() != name)
        };
        candidates.sort_by_key(rank);
        let mut found = None;
        for (at, candidate) in candidates.iter().take(MAX_TRIES).enumerate() {
            if after.bytes > bytes_left {
                break;
            }
            bytes_left -= after.bytes;
            let old = &changes.entries[*candidate];
            if is_same(after, (upper, &change.path), (lower, &old.path))? {
                found = Some(at);
                break;
            }
        }
        if let Some(at) = found {
            let from = changes.entries[candidates.remove(at)].path.clone();
            changes.entries[index].moved_from = Some(from);
        }
    }
    Ok(())
}

/// Returns whether a file can be recognized as moved. Empty files cannot, because they are all equal.
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
    /// Returns renamed directories as pairs of old and new path: all entries of the old directory are at the same
    /// relative path in the new one, and there are no others.
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
    /// Returns whether the change creates or deletes a directory or an empty file.
    fn is_plain_end(&self) -> bool {
        self.before
            .or(self.after)
            .is_some_and(|node| node.kind == NodeKind::Directory || (node.kind == NodeKind::File && node.bytes == 0))
    }
}
