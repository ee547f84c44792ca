//! Commits of only some of the changes. Changes that depend on an excluded change are excluded too.

use super::{Change, Changes, Node, NodeKind, RefusalReason, RefusedChange};
use crate::sys::path::{open_directory, pass_below};
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstat};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

impl Changes {
    /// Removes the changes at these paths. Returns the dependent changes that had to be removed as well, each with the
    /// path that caused its removal.
    ///
    /// If a new directory is excluded, so are its entries. If an entry is excluded from a removal, the directory that
    /// contains it remains. Either both ends of a move are applied or neither is, so nothing is lost.
    pub(crate) fn without(&mut self, refused: &BTreeSet<PathBuf>) -> Vec<(PathBuf, PathBuf)> {
        if refused.is_empty() {
            return Vec::new();
        }
        let mut out: BTreeMap<PathBuf, PathBuf> = refused.iter().map(|path| (path.clone(), path.clone())).collect();
        let by_path: BTreeMap<&Path, &Change> = self.entries.iter().map(|change| (change.path.as_path(), change)).collect();
        let mut ends: BTreeMap<&Path, &Path> = BTreeMap::new();
        for change in &self.entries {
            if let Some(from) = &change.moved_from {
                ends.insert(from, &change.path);
                ends.insert(&change.path, from);
            }
        }
        let mut pending: Vec<PathBuf> = refused.iter().cloned().collect();
        while let Some(path) = pending.pop() {
            let mut more: Vec<&Path> = ends.get(path.as_path()).copied().into_iter().collect();
            // A directory that would be removed or replaced remains if one of its entries does.
            let goes = |change: &&Change| change.before.is_some_and(|node| node.kind == NodeKind::Directory) && change.clears();
            more.extend(path.ancestors().skip(1).filter(|above| by_path.get(above).is_some_and(goes)));
            // If a new directory is excluded, so are its entries.
            let made = |change: &&Change| {
                change.after.is_some_and(|node| node.kind == NodeKind::Directory)
                    && change.before.is_none_or(|node| node.kind != NodeKind::Directory)
            };
            if by_path.get(path.as_path()).is_some_and(made) {
                more.extend(self.below(&path).iter().map(|below| below.path.as_path()));
            }
            for also in more {
                if !out.contains_key(also) {
                    let because = out.get(&path).cloned().unwrap_or_else(|| path.clone());
                    out.insert(also.to_owned(), because);
                    pending.push(also.to_owned());
                }
            }
        }
        self.entries.retain(|change| !out.contains_key(&change.path));
        self.keep_links_whole(&out);
        out.into_iter().filter(|(path, because)| path != because).collect()
    }

    /// Removes the changes at these paths and records them as not applied.
    pub(crate) fn refuse(&mut self, refused: &BTreeSet<PathBuf>) {
        let more = self.without(refused);
        self.unkept.extend(refused.iter().map(|path| RefusedChange { path: path.clone(), why: RefusalReason::Refused }));
        self.unkept.extend(more.into_iter().map(|(path, because)| RefusedChange { path, why: RefusalReason::With(because) }));
        self.unkept.sort_by(|left, right| left.path.cmp(&right.path));
    }

    /// Replaces the new content of a changed file in the upper directory.
    pub(crate) fn rewrite(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        let Ok(at) = self.entries.binary_search_by(|change| change.path.as_path().cmp(path)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let upper = open_directory(&self.layered.upper)?;
        let parent = pass_below(&upper, path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().ok_or_else(missing)?;
        // The file belongs to the user, whatever its mode. The commit sets its final mode.
        fchmodat(&parent, name, Mode::S_IRUSR | Mode::S_IWUSR, FchmodatFlags::NoFollowSymlink)?;
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut file = File::from(openat(&parent, name, flags, Mode::empty())?);
        file.write_all(content)?;
        file.set_len(content.len() as u64)?;
        let now = Node::from_stat(&fstat(&file)?);
        let change = &mut self.entries[at];
        change.written = None;
        let after = change.after.as_mut().ok_or_else(missing)?;
        (after.bytes, after.modified, after.changed) = (now.bytes, now.modified, now.changed);
        Ok(())
    }

    /// Returns the changes at and below a path.
    pub(crate) fn below(&self, path: &Path) -> &[Change] {
        let start = self.entries.partition_point(|change| change.path.as_path() < path);
        let count = self.entries[start..].iter().take_while(|change| change.path.starts_with(path)).count();
        &self.entries[start..start + count]
    }

    /// Preserves hard links. If the first path of a file is excluded, another path takes its place, and the remaining
    /// paths become links to that one.
    fn keep_links_whole(&mut self, out: &BTreeMap<PathBuf, PathBuf>) {
        let mut instead: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for change in &mut self.entries {
            let Some(leader) = change.link_of.clone().filter(|leader| out.contains_key(leader)) else { continue };
            change.link_of = instead.get(&leader).cloned();
            instead.entry(leader).or_insert_with(|| change.path.clone());
        }
    }
}
