//! Overlays: reads the upper directories of a command's copy-on-write view, and commits them to the real directories as a whole.

mod apply;
mod commit;
mod discard;
mod journal;
mod name;
mod node;
mod partial;
mod plan;
mod renames;
mod staging;
mod survey;
#[cfg(test)]
mod tests;
mod xattr;

pub use commit::{CommitError, Outcome, commit};
pub use discard::discard;
pub use journal::{has_begun, recover};
pub use node::{Kind, Node, Time};
pub use survey::{changes, mark};

use super::sandbox::Layered;
use std::path::{Path, PathBuf};

/// More would take too long to look at and to keep.
const MAX_ENTRIES: usize = 500_000;

/// All that a command did in one directory, as it would look from the outside.
#[derive(Debug, Clone)]
pub struct Changes {
    layered: Layered,
    /// When the view was made, by the clock of file times, and when this was found out.
    began: Time,
    surveyed: Time,
    /// The directory itself.
    root: Node,
    /// In the order of their paths, so that a directory comes before what is in it.
    entries: Vec<Change>,
    /// What is not kept, whatever is answered.
    unkept: Vec<Unkept>,
    /// Directories on the way to changes, which stay.
    passed: Vec<Passed>,
}

/// One path that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the directory.
    pub path: PathBuf,
    pub before: Option<Node>,
    /// As it will be: without set-id bits.
    pub after: Option<Node>,
    /// Only the mode, the owner or the times are others.
    pub same_content: bool,
    /// Another path of the same file, which is there or is changed too.
    pub link_of: Option<PathBuf>,
    /// The path it was moved from, which is deleted in the same list.
    pub moved_from: Option<PathBuf>,
    /// It had a set-uid or set-gid bit, which is taken away.
    pub lost_set_id: bool,
    /// The command gave it an access list or other attributes, which are not kept.
    pub lost_attributes: bool,
}

/// Something the command did that is never kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unkept {
    pub path: PathBuf,
    pub why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// A socket, FIFO or device.
    Special,
    /// Only a set-id bit was new.
    SetId,
    /// Only an access list or other attributes were new.
    Attributes,
    /// The directory cannot be listed, so that nobody can say what would go with it.
    Closed,
    /// Names are too long together to be reached.
    TooDeep,
    /// It is not to be changed by a command.
    Refused,
    /// Nothing is done there because of another path.
    With(PathBuf),
}

#[derive(Debug, Clone)]
struct Passed {
    path: PathBuf,
    node: Node,
    /// The command saw none of what is in it.
    emptied: bool,
    /// It is not the directory that the command had.
    replaced: bool,
}

impl Changes {
    /// The real directory.
    pub fn directory(&self) -> &Path {
        &self.layered.directory
    }

    pub fn entries(&self) -> &[Change] {
        &self.entries
    }

    pub fn unkept(&self) -> &[Unkept] {
        &self.unkept
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where the content from before stands.
    pub fn old(&self, path: &Path) -> PathBuf {
        self.layered.directory.join(path)
    }

    /// Where the new content stands until it is committed.
    pub fn new_content(&self, path: &Path) -> PathBuf {
        self.layered.upper.join(path)
    }
}

impl Change {
    /// The kind on both sides, where both are there and the same.
    pub fn kind(&self) -> Option<Kind> {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => (before.kind == after.kind).then_some(after.kind),
            (Some(node), None) | (None, Some(node)) => Some(node.kind),
            (None, None) => None,
        }
    }

    /// Nothing but the time of its last change is another.
    pub fn is_only_touched(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                self.same_content && before.kind == after.kind && before.mode == after.mode && before.owners() == after.owners()
            }
            _ => false,
        }
    }

    /// Other names of the file, which keep the old content.
    pub fn breaks_links(&self) -> u64 {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before.kind == Kind::File && after.kind == Kind::File && !self.same_content => {
                before.links.saturating_sub(1)
            }
            _ => 0,
        }
    }

    /// What stood there has to go before anything else can stand there.
    fn clears(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(_), None) => true,
            (Some(before), Some(after)) => (before.kind == Kind::Directory) != (after.kind == Kind::Directory),
            (None, _) => false,
        }
    }
}
