//! Partial commit: some of the changes without the others. Changes that depend on an excluded one are excluded too.

use super::{Change, Changes, Kind, RefusalReason, RefusedChange};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

impl Changes {
    /// Removes the changes at these paths. Returns the changes that are removed with them, each with the path that caused it.
    ///
    /// Entries of a directory that is not created are not created either; a directory that keeps an entry stays; and of a move,
    /// both ends happen or none, so that nothing is lost.
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
            // A directory that would be removed or replaced stays if one of its entries stays.
            let goes = |change: &&Change| change.before.is_some_and(|node| node.kind == Kind::Directory) && change.clears();
            more.extend(path.ancestors().skip(1).filter(|above| by_path.get(above).is_some_and(goes)));
            // Without a directory, it has no entries.
            let made = |change: &&Change| {
                change.after.is_some_and(|node| node.kind == Kind::Directory)
                    && change.before.is_none_or(|node| node.kind != Kind::Directory)
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

    /// Removes the changes at these paths, and lists them as not kept.
    pub(crate) fn refuse(&mut self, refused: &BTreeSet<PathBuf>) {
        let more = self.without(refused);
        self.unkept.extend(refused.iter().map(|path| RefusedChange { path: path.clone(), why: RefusalReason::Refused }));
        self.unkept.extend(more.into_iter().map(|(path, because)| RefusedChange { path, why: RefusalReason::With(because) }));
        self.unkept.sort_by(|left, right| left.path.cmp(&right.path));
    }

    /// Returns the changes at a path and below it.
    pub(super) fn below(&self, path: &Path) -> &[Change] {
        let start = self.entries.partition_point(|change| change.path.as_path() < path);
        let count = self.entries[start..].iter().take_while(|change| change.path.starts_with(path)).count();
        &self.entries[start..start + count]
    }

    /// If the first name of a file is left out, another name becomes the file, and the other names link to it.
    fn keep_links_whole(&mut self, out: &BTreeMap<PathBuf, PathBuf>) {
        let mut instead: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for change in &mut self.entries {
            let Some(leader) = change.link_of.clone().filter(|leader| out.contains_key(leader)) else { continue };
            change.link_of = instead.get(&leader).cloned();
            instead.entry(leader).or_insert_with(|| change.path.clone());
        }
    }
}
