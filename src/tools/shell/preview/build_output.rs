//! Build output: changes to directories that a command may change without approval.

use super::build_directories::{BuildDirectories, listed_directory};
use super::written_bytes::written_bytes;
use crate::policy::CodeReader;
use crate::protocol::{CountedEffects, RunsWhen};
use crate::sys::overlay::{Change, Changes, NodeKind};
use crate::sys::path::read_link;
use crate::tools::ignored::IgnoreRules;
use crate::tools::paths::display_path_one_line;
use crate::tools::sandbox::RepositoryTrust;
use crate::tools::settings::ToolSettings;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Build output below one root of the workspace.
pub(super) struct BuildOutput<'a> {
    changes: &'a Changes,
    settings: &'a ToolSettings,
    directories: BuildDirectories<'a>,
    found: BTreeMap<PathBuf, CountedEffects>,
}

impl<'a> BuildOutput<'a> {
    pub(super) fn new(changes: &'a Changes, settings: &'a ToolSettings) -> Self {
        let directories = BuildDirectories::new(changes.directory(), settings);
        Self { changes, settings, directories, found: BTreeMap::new() }
    }

    /// Counts a change if it is build output. Returns whether it is.
    pub(super) fn count_if_output(&mut self, change: &Change, reader: Option<CodeReader>, ignored: &mut IgnoreRules<'_>) -> bool {
        let Some(directory) = self.output_directory(change, reader, ignored) else { return false };
        let name = display_path_one_line(&self.changes.old(&directory), self.settings);
        let none = CountedEffects { path: name, created: 0, changed: 0, deleted: 0, bytes: 0, direct: false };
        let counted = self.found.entry(directory).or_insert(none);
        counted.bytes += written_bytes(change);
        if change.kind() != Some(NodeKind::Directory) {
            match (change.before, change.after) {
                (None, _) => counted.created += 1,
                (Some(_), Some(_)) => counted.changed += 1,
                (Some(_), None) => counted.deleted += 1,
            }
        }
        true
    }

    /// Returns the real directories that contain build output, each with a count of its changes.
    pub(super) fn into_counts(self) -> impl Iterator<Item = (PathBuf, CountedEffects)> {
        let changes = self.changes;
        self.found.into_iter().map(move |(directory, counted)| (changes.old(&directory), counted))
    }

    fn output_directory(
        &mut self,
        change: &Change,
        reader: Option<CodeReader>,
        ignored: &mut IgnoreRules<'_>,
    ) -> Option<PathBuf> {
        if self.settings.command.sandbox.trust != RepositoryTrust::Trusted {
            return None;
        }
        let directory = listed_directory(&change.path, change.kind() == Some(NodeKind::Directory))?;
        let qualifies = self.directories.qualifies(&directory, ignored);
        (qualifies && self.can_apply(change, reader, &directory)).then_some(directory)
    }

    /// Returns whether a change may be applied as build output.
    fn can_apply(&self, change: &Change, reader: Option<CodeReader>, directory: &Path) -> bool {
        if change.moved_from.as_ref().is_some_and(|from| !from.starts_with(directory)) {
            return false;
        }
        if reader.is_some_and(|reader| reader.when == RunsWhen::Opened) {
            return false;
        }
        match change.after.map(|after| after.kind) {
            None | Some(NodeKind::File | NodeKind::Directory) => true,
            Some(NodeKind::Special) => false,
            Some(NodeKind::Link) => {
                let says = read_link(&self.changes.new_content(&change.path));
                says.is_ok_and(|says| is_target_inside(&change.path, Path::new(&says), directory))
            }
        }
    }
}

/// Returns whether a symlink at `path` with the target `says` points into the directory.
pub(super) fn is_target_inside(path: &Path, says: &Path, directory: &Path) -> bool {
    let mut at: Vec<_> = path.parent().map_or_else(Vec::new, |parent| parent.components().collect());
    for component in says.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(_) => at.push(component),
            Component::ParentDir if at.pop().is_some() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    at.into_iter().collect::<PathBuf>().starts_with(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_build_output_may_point_only_inside_the_build_directory() {
        let stays = |path: &str, says: &str| is_target_inside(Path::new(path), Path::new(says), Path::new("target"));
        assert!(stays("target/a/link", "../b") && stays("target/link", "./c/d"));
        for (path, says) in
            [("target/link", "../src"), ("target/link", "/etc"), ("target/a/link", "../../x"), ("target/l", "../../../x")]
        {
            assert!(!stays(path, says), "{says}");
        }
    }
}
