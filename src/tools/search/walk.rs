//! How a tree is walked for a search: what is ignored stays out, links are not followed, the answer is bounded and in order.

use super::ignore_files::{trap, trap_above};
use super::unread::Unread;
use crate::protocol::{ErrorCode, Target, ToolError};
use crate::sys::path::{Identity, identity as identity_of};
use crate::tools::tool::{Settings, invalid};
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// More threads than this wait for the same disk.
const MAX_THREADS: usize = 8;
/// What version control keeps for itself.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".svn", ".jj"];

/// How far below its start a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Depth {
    /// What is in the directory itself, in those in it, and so on.
    Levels(usize),
    All,
}

impl Depth {
    fn levels(self) -> Option<usize> {
        match self {
            Self::Levels(levels) => Some(levels),
            Self::All => None,
        }
    }
}

/// Visits what is below a directory, in no order, with one visitor for each thread. Ends early when `kill` fires.
pub(in crate::tools) fn walk<V: FnMut(&DirEntry) + Send>(
    target: &Target,
    settings: &Settings,
    depth: Depth,
    unread: &Unread,
    kill: &CancellationToken,
    visitor: impl Fn() -> V,
) -> Result<(), ToolError> {
    let before = identity(target)?;
    let may_read = settings.may_read.clone();
    let above = trap_above(&target.real, settings);
    if let Some(trap) = &above {
        unread.add(trap, "not opened, so that nothing is left out".to_owned());
    }
    let rules = above.is_none();
    let (shut, traps) = (Arc::new(Mutex::new(Vec::new())), settings.may_read.clone());
    let found = Arc::clone(&shut);
    let opens = move |directory: &Path| {
        let trap = rules.then(|| trap(directory, &*traps)).flatten();
        if let Some(name) = &trap {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(directory.join(name));
        }
        trap.is_none()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let walker = WalkBuilder::new(&target.real)
        .hidden(false)
        .require_git(false)
        .parents(rules)
        .ignore(rules)
        .git_ignore(rules)
        .git_exclude(rules)
        .follow_links(false)
        .threads(threads)
        .max_depth(depth.levels())
        .filter_entry(move |entry| {
            let seen = entry.depth() == 0 || (!is_version_control(entry) && may_read(entry.path()));
            let enters = entry.depth() > 0 && entry.file_type().is_some_and(|kind| kind.is_dir());
            seen && (!enters || opens(entry.path()))
        })
        .build_parallel();
    walker.run(|| {
        let mut visit = visitor();
        Box::new(move |entry| {
            if kill.is_cancelled() {
                return WalkState::Quit;
            }
            match entry {
                Ok(entry) if entry.depth() > 0 => visit(&entry),
                Ok(_) => {}
                Err(error) => unread.add_error(&error),
            }
            WalkState::Continue
        })
    });
    for trap in shut.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        unread.add(&trap, "not a plain file of a usual size; its directory was left out".to_owned());
    }
    if kill.is_cancelled() {
        return Err(ToolError::new(ErrorCode::Cancelled, "the search was stopped before its end"));
    }
    // A link put in its place meanwhile would have shown another tree.
    if identity(target)? == before { Ok(()) } else { Err(moved(target)) }
}

fn is_version_control(entry: &DirEntry) -> bool {
    entry.file_name().to_str().is_some_and(|name| VERSION_CONTROL.contains(&name))
}

fn identity(target: &Target) -> Result<Identity, ToolError> {
    identity_of(&target.real).map_err(|error| crate::tools::paths::open_error(target, &error))
}

fn moved(target: &Target) -> ToolError {
    let message = format!("`{}` was replaced while it was searched; search again", target.given);
    ToolError::new(ErrorCode::Conflict, message)
}

/// The first `limit` of any number of things, in their order, and how many there were.
pub(in crate::tools) struct First<T> {
    kept: BinaryHeap<T>,
    limit: usize,
    pub seen: u64,
}

impl<T: Ord> First<T> {
    pub(in crate::tools) fn new(limit: usize) -> Self {
        Self { kept: BinaryHeap::new(), limit, seen: 0 }
    }

    /// Whether it is among the first so far. What is larger than one that was not will not be either.
    pub(in crate::tools) fn push(&mut self, item: T) -> bool {
        self.seen += 1;
        let kept = self.kept.len() < self.limit || self.kept.peek().is_some_and(|last| item < *last);
        if kept {
            self.kept.push(item);
        }
        if self.kept.len() > self.limit {
            self.kept.pop();
        }
        kept
    }

    pub(in crate::tools) fn into_sorted(self) -> Vec<T> {
        self.kept.into_sorted_vec()
    }
}

/// A path relative to where the search started, for matching.
pub(in crate::tools) fn below<'a>(path: &'a Path, base: &Path) -> &'a Path {
    path.strip_prefix(base).unwrap_or(path)
}

pub(in crate::tools) fn matcher(field: &str, pattern: &str) -> Result<globset::GlobMatcher, ToolError> {
    let built = globset::GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| invalid(format!("`{field}`: {}", error.kind())))
}
