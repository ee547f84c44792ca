//! Walks a directory tree for a search, skipping ignored files and not following symlinks.

use super::skipped::SkippedPlaces;
use crate::protocol::{ErrorCode, Target, ToolError};
use crate::sys::ignore_files::{is_global_plain, trap, unsafe_ignore_file_above};
use crate::sys::path::{DirectoryIdentity, identity as identity_of};
use crate::tools::error::invalid;
use crate::tools::settings::ToolSettings;
use globset::{Glob, GlobBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Maximum number of threads. More would only wait for the same disk.
const MAX_THREADS: usize = 8;
/// Directories that version control systems use internally.
const VERSION_CONTROL: &[&str] = &[".git", ".hg", ".svn", ".jj"];

/// Maximum depth of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum Depth {
    /// This many levels, where 1 is the directory itself.
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

/// Which entries a walk visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) struct WalkScope {
    pub depth: Depth,
    /// Whether hidden entries are included.
    pub hidden: bool,
    /// Whether ignored entries are included. Version control directories never are.
    pub ignored: bool,
}

impl WalkScope {
    /// Returns the default scope of a search.
    pub(in crate::tools) fn default_scope(depth: Depth) -> Self {
        Self { depth, hidden: true, ignored: false }
    }
}

/// Visits every entry below a directory in no particular order, with one visitor per thread. Ends early if `kill` is
/// cancelled.
pub(in crate::tools) fn walk<V: FnMut(&DirEntry) + Send>(
    target: &Target,
    settings: &ToolSettings,
    reach: WalkScope,
    unread: &SkippedPlaces,
    kill: &CancellationToken,
    visitor: impl Fn() -> V,
) -> Result<(), ToolError> {
    let before = identity(target)?;
    let may_read = settings.paths.may_read_in(&target.real);
    let above = if reach.ignored { None } else { unsafe_ignore_file_above(&target.real, &*settings.paths.may_read) };
    if let Some(trap) = &above {
        unread.add(trap, "not opened, so its rules were not applied".to_owned());
    }
    let rules = above.is_none() && !reach.ignored;
    let (shut, traps) = (Arc::new(Mutex::new(Vec::new())), settings.paths.may_read.clone());
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
        .hidden(!reach.hidden)
        .require_git(false)
        .parents(rules)
        .ignore(rules)
        .git_ignore(rules)
        .git_global(!reach.ignored && is_global_plain())
        .git_exclude(rules)
        .follow_links(false)
        .threads(threads)
        .max_depth(reach.depth.levels())
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
        unread.add(&trap, "not a regular file of normal size; its directory was skipped".to_owned());
    }
    if kill.is_cancelled() {
        return Err(ToolError::new(ErrorCode::Cancelled, "the search was stopped before it finished"));
    }
    // A symlink put in place of the directory during the walk would have exposed another tree.
    if identity(target)? == before { Ok(()) } else { Err(changed_error(target)) }
}

fn is_version_control(entry: &DirEntry) -> bool {
    entry.file_name().to_str().is_some_and(|name| VERSION_CONTROL.contains(&name))
}

fn identity(target: &Target) -> Result<DirectoryIdentity, ToolError> {
    identity_of(&target.real).map_err(|error| crate::tools::paths::open_error(target, &error))
}

fn changed_error(target: &Target) -> ToolError {
    let message = format!("`{}` was replaced while it was searched; search again", target.given);
    ToolError::new(ErrorCode::Conflict, message)
}

/// Returns a path relative to the start of the search, as needed for matching.
pub(in crate::tools) fn relative_to<'a>(path: &'a Path, base: &Path) -> &'a Path {
    // Compared as bytes, which is much faster than by component; both have the form used by the walk.
    let rest = path.as_os_str().as_bytes().strip_prefix(base.as_os_str().as_bytes()).and_then(|rest| rest.strip_prefix(b"/"));
    rest.map_or_else(|| path.strip_prefix(base).unwrap_or(path), |rest| Path::new(OsStr::from_bytes(rest)))
}

pub(in crate::tools) fn glob(field: &str, pattern: &str, ignore_case: bool) -> Result<Glob, ToolError> {
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(true).backslash_escape(true).case_insensitive(ignore_case);
    builder.build().map_err(|error| invalid(format!("`{field}`: {}", error.kind())))
}

/// A path that is ordered by its components, so a directory is immediately followed by its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct InOrder(pub PathBuf);

impl InOrder {
    pub(in crate::tools) fn compare(left: &Path, right: &Path) -> Ordering {
        let (left, right) = (left.as_os_str().as_encoded_bytes(), right.as_os_str().as_encoded_bytes());
        let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
        let next = |path: &[u8]| path.get(same).map(|byte| if *byte == b'/' { 0 } else { u16::from(*byte) + 1 });
        next(left).cmp(&next(right))
    }
}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        Self::compare(&self.0, &other.0)
    }
}
