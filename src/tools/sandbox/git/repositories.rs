//! Finds the repositories whose configuration git may read for a line, and their configuration files.

use super::config_format::GitVariables;
use super::repository_scan::RepositoryScan;
use crate::sys::path::open_file;
use crate::tools::sandbox::git_dirs::git_directories;
use crate::tools::sandbox::protected_scan::ScanResult;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Text with which a pointer file starts.
const POINTER: &[u8] = b"gitdir: ";
/// Maximum size of a pointer file in bytes.
const POINTER_BYTES: u64 = 4096;
/// Maximum number of git directories whose configuration is read.
const MAX_REPOSITORIES: usize = 256;

/// Mode that a submodule has in the index.
const OF_ANOTHER: &[u8] = &[0, 0, 0xe0, 0];
const MAX_INDEX_BYTES: u64 = 256 << 20;
const CHUNK: usize = 64 << 10;

/// Whether the user trusts the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RepositoryTrust {
    Trusted,
    /// The project contains no files that require trust, so the user has not been asked.
    #[default]
    NeverAsked,
    Untrusted,
}

/// Repositories that git may use for a line.
#[derive(Debug, Default)]
pub(super) struct ReachableRepositories {
    pub files: GitVariables,
    /// Reasons why there may be further repositories.
    pub gaps: Vec<String>,
}

/// Where to search for repositories.
pub(super) struct SearchScope<'a> {
    pub directory: &'a Path,
    pub roots: &'a [PathBuf],
    /// Whether the line only reads, and only in the repository that contains its directory.
    pub reads: bool,
    /// Whether the line also examines submodules.
    pub into_submodules: bool,
    pub home: Option<&'a Path>,
    /// Latest scan of the workspace, which omits large build and package directories.
    pub known: Option<Arc<ScanResult>>,
    /// Search of the whole workspace, for use if every repository must be found.
    pub all: Option<&'a RepositoryScan>,
}

/// Reads the configuration of every repository that git may use for a line that runs in `directory`.
pub(super) fn reachable_repositories(ground: &SearchScope<'_>) -> ReachableRepositories {
    let mut search = Search { ground, seen: BTreeSet::new(), reached: ReachableRepositories::default() };
    for level in ground.directory.ancestors() {
        search.entry(&level.join(".git"));
        // The directory itself may be a bare repository.
        if is_git_directory(level) {
            search.git_directory(level);
        }
    }
    ground.roots.iter().for_each(|root| search.entry(&root.join(".git")));
    // Git enters another repository only as a submodule, but a line that writes may do so itself.
    let enters = ground.into_submodules || search.seen.iter().any(|directory| may_contain_submodules(directory));
    if !enters && ground.reads {
        return search.reached;
    }
    match (ground.all, &ground.known) {
        (Some(all), _) => {
            let places = all.find();
            if places.is_cut {
                search.reached.gaps.push("the workspace is too large to find every repository in it".to_owned());
            }
            let in_workspace = |entry: &&PathBuf| enters || ground.roots.iter().any(|root| entry.starts_with(root));
            places.found.iter().filter(in_workspace).for_each(|entry| search.entry(entry));
        }
        (None, Some(known)) => known.repositories.iter().for_each(|entry| search.entry(entry)),
        (None, None) => {}
    }
    search.reached
}

struct Search<'a> {
    ground: &'a SearchScope<'a>,
    seen: BTreeSet<PathBuf>,
    reached: ReachableRepositories,
}

impl Search<'_> {
    /// Adds a `.git` entry, which is a directory, a symlink to one, or a pointer file.
    fn entry(&mut self, git: &Path) {
        let Ok(metadata) = git.metadata() else { return };
        if metadata.is_dir() {
            return self.git_directory(git);
        }
        let text = match pointer(git) {
            Ok(text) => text,
            Err(gap) => return self.reached.gaps.push(gap),
        };
        // Git refuses any other file.
        let Some(named) = text.as_deref().and_then(|text| text.strip_prefix(POINTER)) else { return };
        let level = git.parent().unwrap_or(Path::new("/"));
        self.git_directory(&level.join(OsStr::from_bytes(named)));
    }

    fn git_directory(&mut self, directory: &Path) {
        let directory = match directory.canonicalize() {
            Ok(directory) => directory,
            // Git does not find this directory either.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return,
            Err(error) => return self.reached.gaps.push(format!("`{}` cannot be read: {error}", directory.display())),
        };
        if !self.seen.insert(directory.clone()) {
            return;
        }
        if self.seen.len() > MAX_REPOSITORIES {
            if self.seen.len() == MAX_REPOSITORIES + 1 {
                self.reached.gaps.push("there are too many repositories".to_owned());
            }
            return;
        }
        let common = match pointer(&directory.join("commondir")) {
            Ok(text) => text.map(|text| directory.join(OsStr::from_bytes(&text))),
            Err(gap) => return self.reached.gaps.push(gap),
        };
        for place in std::iter::once(&directory).chain(&common) {
            for name in ["config", "config.worktree"] {
                let before = self.reached.files.variables.len();
                self.reached.files.add(&place.join(name), self.ground.home, &|_, _| true);
                self.work_tree(&directory, before);
            }
        }
        // Checked-out submodules point to these directories, and so may `--git-dir`.
        for kind in ["modules", "worktrees"] {
            for below in &git_directories(&directory.join(kind)) {
                self.git_directory(below);
            }
        }
    }

    /// Records a gap if the work tree is outside the workspace, because it may contain repositories that are not known.
    fn work_tree(&mut self, directory: &Path, from: usize) {
        let set = self.reached.files.variables.iter().skip(from).map(|(_, variable)| variable);
        let named = set.filter(|variable| variable.section == "core" && variable.name == "worktree");
        let values: Vec<PathBuf> = named
            .filter_map(|variable| Some(directory.join(std::str::from_utf8(variable.value.as_deref()?).unwrap_or("/"))))
            .collect();
        for place in values {
            let is_outside = match place.canonicalize() {
                Ok(real) => !self.ground.roots.iter().any(|root| real.starts_with(root)),
                // Git ignores the setting if the work tree does not exist.
                Err(error) => error.kind() != ErrorKind::NotFound,
            };
            if is_outside {
                self.reached.gaps.push(format!("the configuration sets `{}` as the work tree", place.display()));
            }
        }
    }
}

/// Returns whether a repository's index may contain submodules, judging by the mode that their entries have. Returns
/// `true` if the index cannot be read.
fn may_contain_submodules(directory: &Path) -> bool {
    let mut indexes = vec![directory.join("index")];
    let others = std::fs::read_dir(directory).into_iter().flatten().flatten();
    indexes.extend(others.filter(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex.")).map(|entry| entry.path()));
    indexes.iter().any(|index| match index.canonicalize() {
        Ok(real) => match open_file(&real) {
            Ok(file) => file_contains(file, OF_ANOTHER),
            Err(_) => true,
        },
        Err(error) => error.kind() != ErrorKind::NotFound,
    })
}

/// Returns whether a file contains these bytes. Returns `true` if the file is too large or cannot be read.
fn file_contains(mut file: File, wanted: &[u8]) -> bool {
    let (mut buffer, mut kept, mut read) = (vec![0; CHUNK], 0, 0_u64);
    loop {
        let Ok(count) = file.read(&mut buffer[kept..]) else { return true };
        read += count as u64;
        let filled = kept + count;
        if count == 0 {
            return false;
        }
        if read > MAX_INDEX_BYTES || buffer[..filled].windows(wanted.len()).any(|window| window == wanted) {
            return true;
        }
        kept = filled.min(wanted.len() - 1);
        buffer.copy_within(filled - kept..filled, 0);
    }
}

/// Returns whether git would accept a directory as a repository.
fn is_git_directory(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// Returns the content, without the final line break, of a file that points to a git directory. Returns `Ok(None)` if
/// the file does not exist.
///
/// # Errors
/// Returns a gap if the file cannot be read in full.
fn pointer(file: &Path) -> Result<Option<Vec<u8>>, String> {
    let gap = |why: &dyn std::fmt::Display| format!("`{}` cannot be read: {why}", file.display());
    let mut text = Vec::new();
    let read = file.canonicalize().and_then(|real| open_file(&real)?.take(POINTER_BYTES + 1).read_to_end(&mut text));
    match read {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(gap(&error)),
        Ok(_) if text.len() as u64 > POINTER_BYTES => return Err(gap(&"the file is too large")),
        Ok(_) => {}
    }
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    text.truncate(end);
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submodule_modes_are_found_anywhere_in_an_index() {
        let tree = tempfile::tempdir().unwrap();
        let index = tree.path().join("index");
        assert!(!may_contain_submodules(tree.path()));
        for (before, found) in [(7, true), (CHUNK - 2, true), (3 * CHUNK - 1, true), (CHUNK, false)] {
            let mut bytes = vec![1; before];
            bytes.extend_from_slice(if found { OF_ANOTHER } else { &[0, 0, 0x81, 0xa4] });
            bytes.extend_from_slice(&[1; 9]);
            std::fs::write(&index, bytes).unwrap();
            assert_eq!(may_contain_submodules(tree.path()), found, "{before}");
        }
        std::fs::remove_file(&index).unwrap();
        nix::unistd::mkfifo(&index, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(may_contain_submodules(tree.path()));
    }

    #[test]
    fn gitdir_pointers_are_followed_as_by_git() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        let names: [&[u8]; 3] = [b"plain", b"space ", b"e\xff"];
        for (name, end) in names.iter().zip(["\n", "\r\n", ""]) {
            let directory = root.join(OsStr::from_bytes(name));
            std::fs::create_dir(&directory).unwrap();
            std::fs::write(directory.join("config"), "[filter \"x\"]\nclean = y\n").unwrap();
            std::fs::write(root.join(".git"), [POINTER, name, end.as_bytes()].concat()).unwrap();
            let roots = [root.clone()];
            let ground = SearchScope {
                directory: &root,
                roots: &roots,
                reads: true,
                into_submodules: false,
                home: None,
                known: None,
                all: None,
            };
            let ReachableRepositories { files, gaps } = reachable_repositories(&ground);
            assert!(files.variables.len() == 1 && gaps.is_empty(), "{}: {gaps:?}", directory.display());
        }
        std::fs::write(root.join(".git"), [POINTER, &vec![b'x'; 5000][..]].concat()).unwrap();
        assert!(pointer(&root.join(".git")).is_err());
        assert_eq!(pointer(&root.join("missing")), Ok(None));
    }

    #[test]
    fn the_configuration_of_every_reachable_repository_is_read() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        let made = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let config = |name: &str| format!("[filter \"{name}\"]\nclean = x\n");
        for (place, name) in [(".git", "top"), (".git/modules/sub", "sub"), ("elsewhere", "pointed"), ("ws/bare", "bare")] {
            made(&format!("{place}/HEAD"), "x");
            made(&format!("{place}/config"), &config(name));
        }
        made("ws/bare/objects/x", "");
        made("ws/bare/refs/x", "");
        made("ws/node_modules/x/.git", "gitdir: ../../../elsewhere\n");
        made("ws/node_modules/x/config", &config("none"));
        made(".git/config.worktree", &format!("{}[core]\nworktree = /\n", config("tree")));
        let (roots, directory) = (vec![root.join("ws")], root.join("ws/bare"));
        let all = RepositoryScan::new(&roots);
        let ground = SearchScope {
            directory: &directory,
            roots: &roots,
            reads: false,
            into_submodules: false,
            home: None,
            known: None,
            all: Some(&all),
        };
        let ReachableRepositories { files, gaps } = reachable_repositories(&ground);
        let alone = reachable_repositories(&SearchScope { reads: true, ..ground });
        assert!(alone.files.variables.len() < files.variables.len(), "no repository has a place for another");
        let named = files.variables.iter().filter_map(|(_, variable)| variable.subsection.as_deref());
        let mut named: Vec<&str> = named.map(|name| std::str::from_utf8(name).unwrap()).collect();
        named.sort_unstable();
        assert_eq!(named, ["bare", "pointed", "sub", "top", "tree"]);
        assert_eq!(gaps.len(), 1, "its work tree is somewhere else: {gaps:?}");
    }
}
