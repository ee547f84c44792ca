//! Overlays: reads the upper directories of a command's copy-on-write view, and commits the changes in them to the real
//! directories as a whole.

mod apply;
mod commit;
mod compare;
mod content;
mod discard;
mod journal;
pub(in crate::sys) mod name;
mod node;
mod outcome;
mod partial;
mod plan;
mod private;
mod progress;
mod recovery;
mod renames;
mod staging;
mod survey;
#[cfg(test)]
mod tests;
mod times;
mod xattr;

pub(crate) use commit::{CommitError, commit};
pub(crate) use content::ContentDigest;
pub(crate) use discard::discard;
pub(crate) use journal::has_begun;
pub(crate) use node::{Node, NodeKind, Time};
pub(crate) use outcome::{CommitOutcome, is_full};
pub(crate) use private::check_private;
pub(crate) use progress::{Progress, Stage};
pub(crate) use recovery::recover;
pub(crate) use survey::{changes, changes_with_progress, mark, marked};
pub(crate) use times::{changed_after, set_current_times, touch_replaced};
pub(crate) use xattr::remove_access_lists;

use crate::sys::path::open_directory;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Maximum number of changes. More would take too long to inspect and use too much memory.
const MAX_ENTRIES: usize = 500_000;

/// A directory with a layer on top that receives all writes to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayeredDirectory {
    /// The real directory. The command sees the view at the same path.
    #[serde(with = "name")]
    pub directory: PathBuf,
    /// Existing private directory that receives written files. It must be on the same file system as `work` and outside
    /// every path that the command may see.
    #[serde(with = "name")]
    pub upper: PathBuf,
    #[serde(with = "name")]
    pub work: PathBuf,
}

/// All changes that a command made in one directory, as seen from outside the overlay.
#[derive(Debug, Clone)]
pub(crate) struct Changes {
    layered: LayeredDirectory,
    /// Time at which the view was created. `surveyed` is the time at which the changes were collected. Both are
    /// according to the clock used for file times.
    began: Time,
    surveyed: Time,
    /// State of the real directory itself.
    root: Node,
    /// Changes, ordered by path, so a directory precedes its entries.
    entries: Vec<Change>,
    /// Changes that are never applied.
    unkept: Vec<RefusedChange>,
    /// Unchanged parent directories of changed entries.
    passed: Vec<VisitedDirectory>,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Path relative to the real directory.
    pub path: PathBuf,
    pub before: Option<Node>,
    /// Digest of a file's or symlink's old content, if it was recorded.
    pub content: Option<ContentDigest>,
    /// New state, without set-ID bits.
    pub after: Option<Node>,
    /// Digest of a file's or symlink's new content, if it was recorded.
    pub written: Option<ContentDigest>,
    /// Whether the content is unchanged and only the mode, owner or times differ.
    pub same_content: bool,
    /// Another path of the same file, which already exists or is also among the changes.
    pub link_of: Option<PathBuf>,
    /// Old path of a moved entry. The deletion of that path is also among the changes.
    pub moved_from: Option<PathBuf>,
    /// Whether a set-UID or set-GID bit was removed.
    pub lost_set_id: bool,
    /// Whether the command set an access control list or other attributes, which are not applied.
    pub lost_attributes: bool,
}

/// A change made by the command that is never applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedChange {
    pub path: PathBuf,
    pub why: RefusalReason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// The entry is a socket, FIFO or device.
    Special,
    /// The command changed only a set-ID bit.
    SetId,
    /// The command changed only an access control list or other attributes.
    Attributes,
    /// The directory cannot be listed, so the effect of removing it is unknown.
    Closed,
    /// The path is too long to be opened.
    TooDeep,
    /// Commands are not allowed to change the path.
    Refused,
    /// The change depends on this other path, whose change is not applied.
    With(PathBuf),
}

#[derive(Debug, Clone)]
struct VisitedDirectory {
    path: PathBuf,
    node: Node,
    /// Whether the command saw none of the directory's entries, because its upper directory hides them.
    emptied: bool,
    /// Whether the path now leads to a different directory than the one that the command used.
    replaced: bool,
}

impl Changes {
    /// Returns the real directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.layered.directory
    }

    pub(crate) fn entries(&self) -> &[Change] {
        &self.entries
    }

    pub(crate) fn unkept(&self) -> &[RefusedChange] {
        &self.unkept
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Restores the original modes of directories, as recorded by an earlier survey, which had to make them readable.
    pub(crate) fn restore_modes_from(&mut self, earlier: &Self) {
        self.entries.retain_mut(|change| {
            let is_opened = |node: &&mut Node| node.kind == NodeKind::Directory && node.mode == survey::OPENED;
            let Some(after) = change.after.as_mut().filter(is_opened) else { return true };
            let found = match earlier.entries.binary_search_by(|known| known.path.cmp(&change.path)) {
                Ok(at) => earlier.entries[at].after.filter(|node| node.inode == after.inode),
                Err(_) => change.before.filter(|_| earlier.passed.iter().any(|passed| passed.path == change.path)),
            };
            let is_unreadable = |node: &Node| node.kind == NodeKind::Directory && node.mode & survey::OPENED != survey::OPENED;
            let Some(found) = found.filter(is_unreadable) else { return true };
            after.mode = found.mode;
            // If only the survey changed the directory, the command did not.
            !change.before.is_some_and(|before| before.mode == after.mode && before.owners() == after.owners())
        });
    }

    /// Returns the time at which the view was created, according to the clock used for file times.
    pub(crate) fn start_time(&self) -> Time {
        self.began
    }

    /// Returns whether a commit must copy new content because the layer is on another file system than the directory.
    pub(crate) fn must_be_copied(&self) -> bool {
        let opened = (open_directory(&self.layered.upper), open_directory(&self.layered.directory));
        matches!(opened, (Ok(upper), Ok(directory)) if !staging::is_same_mount(&upper, &directory))
    }

    /// Returns whether the replaced entries did not change while the command was running.
    pub(crate) fn is_settled(&self) -> bool {
        let passed = self.passed.iter().filter(|passed| passed.emptied).map(|passed| passed.node);
        let replaced = self.entries.iter().filter_map(|change| change.before);
        replaced.chain(passed).all(|node| node.changed <= self.began)
    }

    /// Records that an earlier process finalized the changes. Any replaced entry that has been touched since then was
    /// thus not touched while the command was running.
    pub(crate) fn mark_settled(&mut self) {
        self.surveyed = self.began;
    }

    /// Returns the path at which the old content is found.
    pub(crate) fn old(&self, path: &Path) -> PathBuf {
        self.layered.directory.join(path)
    }

    /// Returns the path at which the new content is found until the commit.
    pub(crate) fn new_content(&self, path: &Path) -> PathBuf {
        self.layered.upper.join(path)
    }
}

impl Change {
    /// Returns the kind of entry, or `None` if the command replaced the entry with one of another kind.
    pub(crate) fn kind(&self) -> Option<NodeKind> {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => (before.kind == after.kind).then_some(after.kind),
            (Some(node), None) | (None, Some(node)) => Some(node.kind),
            (None, None) => None,
        }
    }

    /// Returns whether nothing but the times changed.
    pub(crate) fn is_only_touched(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                self.same_content && before.kind == after.kind && before.mode == after.mode && before.owners() == after.owners()
            }
            _ => false,
        }
    }

    /// Returns whether nothing but the times of a regular file changed.
    pub(crate) fn is_touched_file(&self) -> bool {
        let is_whole = !self.lost_set_id && !self.lost_attributes && self.link_of.is_none() && self.moved_from.is_none();
        is_whole && self.kind() == Some(NodeKind::File) && self.is_only_touched()
    }

    /// Returns the number of other hard links to the replaced file. They retain the old content.
    pub(crate) fn other_link_count(&self) -> u64 {
        match (&self.before, &self.after) {
            (Some(before), Some(after))
                if before.kind == NodeKind::File && after.kind == NodeKind::File && !self.same_content =>
            {
                before.links.saturating_sub(1)
            }
            _ => 0,
        }
    }

    /// Returns whether the old entry must be removed before the new one can be created.
    fn clears(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(_), None) => true,
            (Some(before), Some(after)) => (before.kind == NodeKind::Directory) != (after.kind == NodeKind::Directory),
            (None, _) => false,
        }
    }
}
