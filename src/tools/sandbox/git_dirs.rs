//! Paths of a repository to which an approved git command may write. Entries that could make git run a program or read
//! another configuration remain protected.

use crate::sys::path::open_parent;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Protected entries of every git directory, and of a work tree's git directory.
const PROTECTED_ENTRIES: &[&str] = &["config", "config.worktree", "hooks", "info"];
const PROTECTED_WORKTREE_ENTRIES: &[&str] = &["config.worktree"];
/// File that points to the configuration. If it does not exist, a neutral one is mounted while a command runs.
const POINTER: &str = "commondir";
/// File that points to a work tree. If it does not exist, it must not be created, because git would then consider the
/// work tree lost.
const BACK: &str = "gitdir";
/// Directories that contain nested git directories, with the protected entries of the latter.
const NESTED: [(&str, &[&str]); 2] = [("modules", PROTECTED_ENTRIES), ("worktrees", PROTECTED_WORKTREE_ENTRIES)];
/// Maximum number of nested git directories.
const MAX_NESTED: usize = 256;
/// Maximum number of repositories in a workspace that are made writable.
const MAX_REPOSITORIES: usize = 32;
/// Maximum size of a pointer file in bytes.
const POINTER_BYTES: u64 = 4096;

/// Repository paths to which a command receives access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::tools) struct RepositoryAccess {
    pub writable: Vec<PathBuf>,
    pub read_only: Vec<PathBuf>,
    /// Paths that would redirect git to another configuration, and that cannot be protected before they exist.
    pub must_not_appear: Vec<PathBuf>,
}

/// Git directories of a workspace whose `.git` is a file or is in a parent directory. The user trusts these locations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GitOutside {
    directories: Vec<PathBuf>,
}

impl GitOutside {
    /// Finds the git directories without running git. Recognizes only layouts that git itself creates: a work tree that
    /// its repository knows, a submodule among its parent's modules, or a subdirectory of a repository.
    pub(crate) fn find(workspace: &Path) -> Self {
        let Some(level) = workspace.ancestors().find(|level| level.join(".git").symlink_metadata().is_ok()) else {
            return Self::default();
        };
        let git = level.join(".git");
        let Ok(metadata) = git.symlink_metadata() else { return Self::default() };
        let directories = if metadata.is_dir() {
            // A `.git` inside the workspace is not an outside path.
            if level == workspace { Vec::new() } else { vec![git] }
        } else {
            linked_git_dirs(&git, level)
        };
        Self { directories: directories.iter().filter_map(|directory| directory.canonicalize().ok()).collect() }
    }

    /// Returns the git directories.
    pub(in crate::tools) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Returns the paths for a command that has access to every git directory.
    pub(in crate::tools) fn all_access(&self) -> RepositoryAccess {
        let mut opened = RepositoryAccess::default();
        self.directories.iter().for_each(|directory| opened.add(directory));
        opened
    }
}

/// Returns the git directory to which a `.git` file points, and its common directory.
fn linked_git_dirs(git: &Path, level: &Path) -> Vec<PathBuf> {
    let found = || {
        let directory = level.join(first_line(git)?.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        let Some(common) = first_line(&directory.join("commondir")) else {
            let in_modules = |above: &Path| directory.starts_with(above.join(".git/modules"));
            return level.ancestors().skip(1).any(in_modules).then(|| vec![directory.clone()]);
        };
        // The repository must point back to this work tree. An attacker who controls only the tree cannot fake that.
        let back = PathBuf::from(first_line(&directory.join("gitdir"))?).canonicalize().ok()?;
        let common = directory.join(common).canonicalize().ok()?;
        let known = back == git.canonicalize().ok()? && directory.starts_with(common.join("worktrees"));
        known.then(|| vec![common, directory.clone()])
    };
    found().unwrap_or_default()
}

fn first_line(file: &Path) -> Option<String> {
    let mut text = String::new();
    crate::sys::path::open_file(&file.canonicalize().ok()?).ok()?.take(POINTER_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim_end().to_owned())
}

impl RepositoryAccess {
    /// Returns the paths of the workspace's repositories. Considers only those whose `.git` is a directory.
    pub(in crate::tools) fn for_repositories(repositories: &[PathBuf]) -> Self {
        let mut opened = Self::default();
        let directories = repositories.iter().filter(|git| git.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()));
        directories.take(MAX_REPOSITORIES).for_each(|git| opened.add(git));
        opened
    }

    /// Adds a git directory. It becomes a mount of its own, so it cannot be moved away along with its protected
    /// entries.
    fn add(&mut self, directory: &Path) {
        self.writable.push(directory.to_owned());
        let mut open = vec![(directory.to_owned(), PROTECTED_ENTRIES)];
        let mut nested = 0;
        while let Some((directory, shut)) = open.pop() {
            self.read_only.extend(shut.iter().chain([&POINTER]).map(|name| directory.join(name)));
            let back = directory.join(BACK);
            let known = if back.symlink_metadata().is_ok() { &mut self.read_only } else { &mut self.must_not_appear };
            known.push(back);
            for (kind, shut) in NESTED {
                for below in git_directories(&directory.join(kind)) {
                    nested += 1;
                    if nested <= MAX_NESTED {
                        open.push((below, shut));
                    }
                }
            }
        }
    }

    pub(in crate::tools) fn merge(mut self, other: Self) -> Self {
        self.writable.extend(other.writable);
        self.read_only.extend(other.read_only);
        self.must_not_appear.extend(other.must_not_appear);
        self
    }
}

/// Removes any of these paths that were created, because they would redirect git. Returns a description of them, or
/// `None` if there are none.
pub(in crate::tools) fn take_away(paths: &[PathBuf]) -> Option<String> {
    // The command may have created a symlink; none is followed.
    let gone = |path: &&PathBuf| {
        let held = open_parent(path)
            .map(|(parent, name)| (PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd())).join(name), parent));
        held.is_ok_and(|(path, _parent)| {
            path.symlink_metadata().is_ok_and(|metadata| {
                if metadata.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.is_ok()
            })
        })
    };
    let gone: Vec<String> = paths.iter().filter(gone).map(|path| format!("`{}`", path.display())).collect();
    (!gone.is_empty()).then(|| format!("removed {}: git would have read configuration from it", gone.join(", ")))
}

/// Lists the directories below `above` that contain a `HEAD`. Subdirectories are searched because module names may
/// contain slashes. Symlinks are not followed.
pub(super) fn git_directories(above: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if !above.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return found;
    }
    let mut open = vec![(above.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for path in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
        {
            if path.join("HEAD").symlink_metadata().is_ok() {
                found.push(path);
            } else if depth < 3 {
                open.push((path, depth + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
    }

    #[test]
    fn files_that_make_git_run_programs_stay_read_only_in_repositories_and_modules() {
        let tree = tempfile::tempdir().expect("a directory");
        made(tree.path(), &[(".git/HEAD", "x"), (".git/modules/a/b/HEAD", "x")]);
        let git = tree.path().join(".git");
        let opened = RepositoryAccess::for_repositories(std::slice::from_ref(&git));
        assert_eq!(opened.writable, std::slice::from_ref(&git));
        for name in ["hooks", "config", "config.worktree", "info", "modules/a/b/hooks", "modules/a/b/config"] {
            assert!(opened.read_only.contains(&git.join(name)), "{name}");
        }
        for name in ["commondir", "modules/a/b/commondir"] {
            assert!(opened.read_only.contains(&git.join(name)), "{name}");
        }
        assert!(opened.must_not_appear.contains(&git.join("gitdir")));
    }

    #[test]
    fn files_to_remove_are_not_searched_behind_links() {
        let tree = tempfile::tempdir().expect("a directory");
        let root = tree.path().canonicalize().expect("real");
        made(&root, &[("other/.git/gitdir", "x"), ("sub/.git/gitdir", "x")]);
        std::os::unix::fs::symlink(root.join("other"), root.join("link")).expect("linked");
        let paths = ["link", "sub"].map(|name| root.join(name).join(".git/gitdir"));
        let told = take_away(&paths).expect("something was there");
        assert!(told.contains("sub/.git/gitdir") && !told.contains("link"), "{told}");
        assert!(root.join("other/.git/gitdir").exists() && !root.join("sub/.git/gitdir").exists());
    }

    #[test]
    fn links_among_repository_modules_are_not_followed() {
        let tree = tempfile::tempdir().expect("a directory");
        made(tree.path(), &[(".git/HEAD", "x"), ("elsewhere/a/HEAD", "x")]);
        let git = tree.path().join(".git");
        std::os::unix::fs::symlink("../elsewhere", git.join("worktrees")).expect("linked");
        let opened = RepositoryAccess::for_repositories(std::slice::from_ref(&git));
        assert!(!opened.read_only.iter().any(|place| place.starts_with(git.join("worktrees"))), "{opened:?}");
    }

    #[test]
    fn a_linked_work_tree_includes_its_repository() {
        let tree = tempfile::tempdir().expect("a directory");
        let root = tree.path().canonicalize().expect("real");
        let back = format!("{}\n", root.join("wt/.git").display());
        made(
            &root,
            &[
                ("main/.git/HEAD", "x"),
                ("main/.git/worktrees/wt/commondir", "../..\n"),
                ("main/.git/worktrees/wt/gitdir", &back),
                ("main/.git/worktrees/wt/HEAD", "x"),
                ("wt/.git", &format!("gitdir: {}\n", root.join("main/.git/worktrees/wt").display())),
            ],
        );
        let opened = GitOutside::find(&root.join("wt")).all_access();
        assert_eq!(opened.writable, [root.join("main/.git"), root.join("main/.git/worktrees/wt")]);
        for name in ["hooks", "config", "worktrees/wt/commondir", "worktrees/wt/config.worktree"] {
            assert!(opened.read_only.contains(&root.join("main/.git").join(name)), "{name}");
        }
    }

    #[test]
    fn gitdir_pointers_unknown_to_their_repository_give_no_access() {
        let tree = tempfile::tempdir().expect("a directory");
        let root = tree.path().canonicalize().expect("real");
        made(
            &root,
            &[
                ("victim/.git/HEAD", "x"),
                ("victim/.git/commondir", "."),
                ("victim/.git/gitdir", "/elsewhere/.git"),
                ("evil/.git", &format!("gitdir: {}\n", root.join("victim/.git").display())),
                ("also/.git", "gitdir: ../victim/.git/worktrees/none\n"),
            ],
        );
        for name in ["evil", "also"] {
            assert_eq!(GitOutside::find(&root.join(name)), GitOutside::default(), "{name}");
        }
    }

    #[test]
    fn a_workspace_below_a_repository_root_includes_the_repository() {
        let tree = tempfile::tempdir().expect("a directory");
        let root = tree.path().canonicalize().expect("real");
        made(&root, &[(".git/HEAD", "x"), ("crates/a/x", "")]);
        assert_eq!(GitOutside::find(&root.join("crates/a")).all_access().writable, [root.join(".git")]);
        assert_eq!(GitOutside::find(&root), GitOutside::default());
    }
}
