//! Partial commit: some of the changes without the others. Changes that depend on an excluded one are excluded too.

use super::{Change, Changes, Kind, Unkept, Why};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

impl Changes {
    /// Leaves out the changes at these paths. Gives those that go with them, and the path because of which.
    ///
    /// What is below a directory that is not made is not made either; a directory stays that keeps something; and of a move both
    /// ends happen or none, so that nothing is lost.
    pub fn without(&mut self, refused: &BTreeSet<PathBuf>) -> Vec<(PathBuf, PathBuf)> {
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
            // A directory that is to go, or to become something else, stays with what stays in it.
            let goes = |change: &&Change| change.before.is_some_and(|node| node.kind == Kind::Directory) && change.clears();
            more.extend(path.ancestors().skip(1).filter(|above| by_path.get(above).is_some_and(goes)));
            // Without a directory there is nothing in it.
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

    /// The same; and they stand among what is not kept.
    pub fn refuse(&mut self, refused: &BTreeSet<PathBuf>) {
        let more = self.without(refused);
        self.unkept.extend(refused.iter().map(|path| Unkept { path: path.clone(), why: Why::Refused }));
        self.unkept.extend(more.into_iter().map(|(path, because)| Unkept { path, why: Why::With(because) }));
        self.unkept.sort_by(|left, right| left.path.cmp(&right.path));
    }

    /// The changes at a path and below it.
    pub(super) fn below(&self, path: &Path) -> &[Change] {
        let start = self.entries.partition_point(|change| change.path.as_path() < path);
        let count = self.entries[start..].iter().take_while(|change| change.path.starts_with(path)).count();
        &self.entries[start..start + count]
    }

    /// A name of a file whose first name is left out is the file itself, and the other names lead to it.
    fn keep_links_whole(&mut self, out: &BTreeMap<PathBuf, PathBuf>) {
        let mut instead: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        for change in &mut self.entries {
            let Some(leader) = change.link_of.clone().filter(|leader| out.contains_key(leader)) else { continue };
            change.link_of = instead.get(&leader).cloned();
            instead.entry(leader).or_insert_with(|| change.path.clone());
        }
    }
}
