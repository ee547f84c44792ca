//! Search for instruction files below a workspace, which is limited and follows ignore rules. The files that it finds
//! have no effect without trust.

use super::contents::read_small;
use crate::config::instructions::{InstructionFile, in_directory};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Maximum number of directory entries to visit.
const MAX_ENTRIES: usize = 20_000;
/// Maximum number of files to list.
pub(crate) const MAX_FILES: usize = 100;
/// Maximum depth below the workspace.
const DEPTH: usize = 16;
/// Maximum size of an ignore file in bytes.
const RULES_BYTES: u64 = 256 << 10;
/// Directories that other programs commonly create in a workspace and that the search skips.
const SKIPPED: &[&str] = &["node_modules", "target", "vendor", "venv"];

/// Result of the search.
#[derive(Debug, Default)]
pub(crate) struct NestedFiles {
    /// Instruction files, sorted by path.
    pub files: Vec<InstructionFile>,
    /// Whether the search hit a limit, so there may be more files.
    pub is_cut: bool,
}

/// Searches the directories below a workspace for instruction files, starting with the nearest ones.
pub(crate) fn search_below(workspace: &Path) -> NestedFiles {
    let mut found = NestedFiles::default();
    let mut entries = 0;
    let mut open: VecDeque<(PathBuf, usize, Vec<Gitignore>)> = VecDeque::from([(workspace.to_owned(), 0, Vec::new())]);
    while let Some((directory, depth, mut rules)) = open.pop_front() {
        rules.extend(read_ignore_rules(&directory));
        let Ok(names) = crate::sys::path::entries(&directory) else { continue };
        for entry in names.filter_map(Result::ok) {
            entries += 1;
            if entries > MAX_ENTRIES {
                found.is_cut = true;
                return sorted(found);
            }
            let name = entry.file_name();
            let text = name.to_string_lossy();
            let path = directory.join(&name);
            // A symlink to a directory could form a cycle, and hidden directories belong to programs.
            let is_directory = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
            if !is_directory || text.starts_with('.') || SKIPPED.contains(&&*text) || is_ignored(&path, &rules) {
                continue;
            }
            if depth + 1 > DEPTH || found.files.len() >= MAX_FILES {
                found.is_cut = true;
                continue;
            }
            found.files.extend(in_directory(&path, workspace));
            open.push_back((path, depth + 1, rules.clone()));
        }
    }
    sorted(found)
}

fn sorted(mut found: NestedFiles) -> NestedFiles {
    found.files.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Returns a directory's ignore rules. The files are not read by the `ignore` crate, because a file could be very
/// large, a pipe or a device.
fn read_ignore_rules(directory: &Path) -> Vec<Gitignore> {
    let of = |name: &str| {
        let path = directory.join(name).canonicalize().ok()?;
        let bytes = read_small(&path, RULES_BYTES).ok()??;
        let mut builder = GitignoreBuilder::new(directory);
        for line in String::from_utf8_lossy(&bytes).lines() {
            // Skip invalid patterns.
            let _ = builder.add_line(None, line);
        }
        builder.build().ok()
    };
    [".gitignore", ".ignore"].into_iter().filter_map(of).collect()
}

/// Returns whether the rules of the parent directories ignore the path. The rules of the nearest directory take
/// precedence.
fn is_ignored(path: &Path, rules: &[Gitignore]) -> bool {
    let decided = rules.iter().rev().map(|rules| rules.matched(path, true)).find(|matched| !matched.is_none());
    decided.is_some_and(|matched| matched.is_ignore())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn names(root: &Path) -> Vec<String> {
        let found = search_below(root).files;
        found.iter().map(|file| file.path.strip_prefix(root).unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn nested_files_are_found_except_in_ignored_and_symlinked_directories() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in
            ["AGENTS.md", "a/AGENTS.md", "a/b/CLAUDE.md", "out/AGENTS.md", "node_modules/x/AGENTS.md", ".hidden/AGENTS.md"]
        {
            write(&root, name, "text\n");
        }
        write(&root, ".gitignore", "/out\n");
        std::os::unix::fs::symlink(&root, root.join("a/circle")).unwrap();
        assert_eq!(names(&root), ["a/AGENTS.md", "a/b/CLAUDE.md"]);
    }

    #[test]
    fn pipes_and_huge_ignore_files_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        write(&root, "a/AGENTS.md", "text\n");
        nix::unistd::mkfifo(&root.join(".gitignore"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        nix::unistd::mkfifo(&root.join("CLAUDE.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::File::create(root.join("a/.gitignore")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(names(&root), ["a/AGENTS.md"]);
    }

    #[test]
    fn a_large_workspace_is_searched_only_up_to_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for at in 0..(MAX_FILES + 5) {
            write(&root, &format!("p{at}/AGENTS.md"), "text\n");
        }
        let found = search_below(&root);
        assert!(found.is_cut && found.files.len() == MAX_FILES, "{}", found.files.len());
    }
}
