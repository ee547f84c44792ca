//! Steps that bring a directory into the state that the command produced. Each step is idempotent.

use super::node::{Node, NodeKind, Time};
use super::{Change, Changes};
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where new content is found before it is moved to its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Source {
    /// At the same path in the upper directory.
    Upper,
    /// In the staging directory, under this number.
    Staged(usize),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    #[serde(with = "super::name")]
    pub path: PathBuf,
    pub what: StepAction,
}

impl Step {
    /// Returns whether the step moves a prepared file or symlink to its path.
    pub(super) fn is_placement(&self) -> bool {
        matches!(self.what, StepAction::Place { .. })
    }

    /// Returns whether the step creates, replaces or deletes a file, symlink or hard link, or sets the attributes of an
    /// existing one.
    pub(super) fn is_of_file(&self) -> bool {
        match &self.what {
            StepAction::Place { .. } | StepAction::Link { .. } => true,
            StepAction::Remove { before } | StepAction::Dress { before: Some(before), .. } => before.kind != NodeKind::Directory,
            StepAction::Open { .. } | StepAction::Directory { .. } | StepAction::Dress { before: None, .. } => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StepAction {
    /// Gives the owner full access to the directory until it receives its final mode.
    Open { inode: u64 },
    /// Removes the old entry. If the entry is a directory, it is empty by then.
    Remove { before: Node },
    /// Creates an empty directory at a path where no entry exists.
    Directory { number: usize },
    /// Moves a file or symlink into place, replacing the old entry if there is one.
    Place { source: Source, before: Option<Node> },
    /// Creates a hard link.
    Link {
        #[serde(with = "super::name")]
        to: PathBuf,
        number: usize,
        before: Option<Node>,
    },
    /// Sets the mode, owner and time. The inode of a new directory is not known until it has been created.
    Dress { before: Option<Node>, number: Option<usize>, mode: u32, owner: u32, group: u32, modified: Option<Time> },
}

/// Returns every step needed to apply the changes to one directory, in order.
pub(super) fn steps(changes: &Changes, may_write: &dyn Fn(&Path) -> bool) -> Vec<Step> {
    let opened = directories_to_open(changes, may_write);
    let mut steps: Vec<Step> =
        opened.iter().map(|(path, node)| Step { path: path.clone(), what: StepAction::Open { inode: node.inode } }).collect();
    let removed = changes.entries.iter().rev().filter(|change| change.clears());
    steps.extend(
        removed
            .filter_map(|change| Some(Step { path: change.path.clone(), what: StepAction::Remove { before: change.before? } })),
    );
    let mut numbers = BTreeMap::new();
    let mut number = 0..;
    for change in &changes.entries {
        if let Some(what) = place_action(change, &mut || number.next().unwrap_or_default(), &mut numbers) {
            steps.push(Step { path: change.path.clone(), what });
        }
    }
    let mut dressed: BTreeMap<PathBuf, StepAction> = opened
        .into_iter()
        .filter(|(path, _)| !is_removed(changes, path))
        .map(|(path, node)| {
            let dress = StepAction::Dress {
                before: Some(node),
                number: None,
                mode: node.mode,
                owner: node.owner,
                group: node.group,
                modified: None,
            };
            (path, dress)
        })
        .collect();
    for change in &changes.entries {
        let Some(after) = change.after else { continue };
        let number = numbers.get(&change.path).copied();
        if after.kind == NodeKind::Link || !(change.same_content || number.is_some()) {
            continue;
        }
        let before = change.before.filter(|_| number.is_none());
        // The time of an existing directory is not set, because other programs may add entries to it.
        let modified = (after.kind == NodeKind::File || number.is_some()).then_some(after.modified);
        let (mode, owner, group) = (after.mode, after.owner, after.group);
        dressed.insert(change.path.clone(), StepAction::Dress { before, number, mode, owner, group, modified });
    }
    steps.extend(dressed.into_iter().rev().map(|(path, what)| Step { path, what }));
    steps
}

fn place_action(
    change: &Change,
    number: &mut dyn FnMut() -> usize,
    numbers: &mut BTreeMap<PathBuf, usize>,
) -> Option<StepAction> {
    let after = change.after?;
    if after.kind == NodeKind::Directory {
        if change.before.is_some_and(|before| before.kind == NodeKind::Directory) {
            return None;
        }
        let number = number();
        numbers.insert(change.path.clone(), number);
        return Some(StepAction::Directory { number });
    }
    if change.same_content {
        return None;
    }
    let before = change.before.filter(|_| !change.clears());
    Some(match &change.link_of {
        Some(to) => StepAction::Link { to: to.clone(), number: number(), before },
        None => StepAction::Place { source: Source::Upper, before },
    })
}

/// Returns the directories that must be made writable first, because their owner has no write permission.
fn directories_to_open(changes: &Changes, may_write: &dyn Fn(&Path) -> bool) -> BTreeMap<PathBuf, Node> {
    if Uid::effective().is_root() {
        return BTreeMap::new();
    }
    let touched: BTreeSet<&Path> =
        changes.entries.iter().filter(|change| !change.same_content).filter_map(|change| change.path.parent()).collect();
    let deleted = changes.entries.iter().filter_map(|change| Some((change.path.as_path(), change.before?)));
    let directories = changes.passed.iter().map(|passed| (passed.path.as_path(), passed.node)).chain(deleted);
    directories
        .filter(|(path, node)| node.kind == NodeKind::Directory && touched.contains(path) && !may_write(path))
        .map(|(path, node)| (path.to_owned(), node))
        .collect()
}

fn is_removed(changes: &Changes, path: &Path) -> bool {
    let found = changes.entries.binary_search_by(|change| change.path.as_path().cmp(path));
    found.is_ok_and(|at| changes.entries[at].clears())
}
