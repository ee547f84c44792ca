//! Determines which directories git ignored before a command ran. The ignore rules as they were before the command
//! apply, so a command cannot hide its own changes.

use crate::sys::ignore_files::{trap, unsafe_ignore_file_above};
use crate::sys::overlay::{Change, NodeKind};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub(in crate::tools) struct IgnoreRules<'a> {
    directory: &'a Path,
    /// Returns whether an ignore file may be read.
    may_read: &'a dyn Fn(&Path) -> bool,
    /// Ignore rules by directory, or `None` if a directory has none or they cannot be read safely.
    rules: HashMap<PathBuf, Option<Gitignore>>,
    /// Outermost ignored directory at or above each directory that has been checked.
    known: HashMap<PathBuf, Option<PathBuf>>,
    reads: bool,
}

impl<'a> IgnoreRules<'a> {
    pub(crate) fn new(directory: &'a Path, may_read: &'a dyn Fn(&Path) -> bool) -> Self {
        let reads = unsafe_ignore_file_above(directory, may_read).is_none();
        Self { directory, may_read, rules: HashMap::new(), known: HashMap::new(), reads }
    }

    /// Returns the outermost ignored directory that contains a changed path, or `None` if the path is in no ignored
    /// directory.
    pub(crate) fn ignored_directory(&mut self, change: &Change) -> Option<PathBuf> {
        let is_directory = change.kind() == Some(NodeKind::Directory);
        let directory = if is_directory { change.path.as_path() } else { change.path.parent()? };
        self.outermost(directory)
    }

    /// Returns whether git ignores this path or one of its parents.
    pub(crate) fn ignores(&mut self, change: &Change) -> bool {
        self.ignored_directory(change).is_some()
            || (self.reads && self.matches(&change.path, change.kind() == Some(NodeKind::Directory)))
    }

    /// Returns whether an ignore file that applies to a path has changed since `since`.
    pub(crate) fn changed_since(&mut self, path: &Path, since: SystemTime) -> bool {
        let since = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        let is_later = |file: PathBuf| {
            file.symlink_metadata()
                .is_ok_and(|data| i128::from(data.ctime()) * 1_000_000_000 + i128::from(data.ctime_nsec()) >= since)
        };
        let files = path.ancestors().skip(1).map(|above| self.directory.join(above).join(".gitignore"));
        files.chain([self.directory.join(".git/info/exclude")]).any(is_later)
    }

    /// Returns the outermost ignored directory at or above this directory, if there is one.
    pub(crate) fn outermost(&mut self, directory: &Path) -> Option<PathBuf> {
        let parent = directory.parent().filter(|_| self.reads)?;
        if let Some(known) = self.known.get(directory) {
            return known.clone();
        }
        let found = self.outermost(parent).or_else(|| self.is_ignored(directory).then(|| directory.to_owned()));
        self.known.insert(directory.to_owned(), found.clone());
        found
    }

    /// Applies the rules in the parent directories, nearest first.
    fn is_ignored(&mut self, directory: &Path) -> bool {
        self.matches(directory, true)
    }

    fn matches(&mut self, path: &Path, is_directory: bool) -> bool {
        let real = self.directory.join(path);
        let mut above = path.parent();
        while let Some(parent) = above {
            if let Some(rules) = self.rules_for(parent) {
                match rules.matched(&real, is_directory) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            above = parent.parent();
        }
        false
    }

    fn rules_for(&mut self, directory: &Path) -> Option<&Gitignore> {
        let (real, may_read) = (self.directory.join(directory), self.may_read);
        let is_top = directory.as_os_str().is_empty();
        let rules = self.rules.entry(directory.to_owned()).or_insert_with(|| {
            if trap(&real, may_read).is_some() {
                return None;
            }
            let mut builder = GitignoreBuilder::new(&real);
            if is_top {
                builder.add(real.join(".git/info/exclude"));
            }
            builder.add(real.join(".gitignore"));
            builder.build().ok().filter(|rules| !rules.is_empty())
        });
        rules.as_ref()
    }
}
