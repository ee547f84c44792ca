//! The repositories whose configuration a line may make git read, and the files that this configuration is in.

use super::everywhere::Everywhere;
use super::format::Files;
use crate::sys::path::open_file;
use crate::tools::shell::git_places::git_directories;
use crate::tools::shell::survey::Found;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A pointer is one line.
const POINTER_BYTES: u64 = 4096;
/// Git directories of which the configuration is read.
const MAX_REPOSITORIES: usize = 256;

/// The mode of a repository in the index of another one.
const OF_ANOTHER: &[u8] = &[0, 0, 0xe0, 0];
const MAX_INDEX_BYTES: u64 = 256 << 20;
const CHUNK: usize = 64 << 10;

/// What the user said of the project that the commands run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepositoryTrust {
    Trusted,
    /// It brings nothing that aye would ask about, so the user was never asked.
    #[default]
    NeverAsked,
    Untrusted,
}

/// What a line may reach.
#[derive(Debug, Default)]
pub(super) struct Reached {
    pub files: Files,
    /// Why there may be more.
    pub gaps: Vec<String>,
}

/// Where repositories are looked for.
pub(super) struct Ground<'a> {
    pub directory: &'a Path,
    pub roots: &'a [PathBuf],
    /// The line only reads, in the repository of its directory.
    pub reads: bool,
    /// The line asks for what changed in submodules.
    pub into_submodules: bool,
    pub home: Option<&'a Path>,
    /// What is known of the workspace without waiting: large directories of builds and packages are left out.
    pub known: Option<Arc<Found>>,
    /// Looks through all of the workspace, where nothing may be missed.
    pub all: Option<&'a Everywhere>,
}

/// Reads the configuration of every repository that git may use for a line that runs in `directory`.
pub(super) fn reached(ground: &Ground<'_>) -> Reached {
    let mut search = Search { ground, seen: BTreeSet::new(), reached: Reached::default() };
    for level in ground.directory.ancestors() {
        search.entry(&level.join(".git"));
        // A directory that is itself a repository without a work tree.
        if is_git_directory(level) {
            search.git_directory(level);
        }
    }
    ground.roots.iter().for_each(|root| search.entry(&root.join(".git")));
    // Git enters no repository in another one that has no place for it. A line that writes may go there by itself.
    let enters = ground.into_submodules || search.seen.iter().any(|directory| has_places_for_others(directory));
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
    ground: &'a Ground<'a>,
    seen: BTreeSet<PathBuf>,
    reached: Reached,
}

impl Search<'_> {
    /// A `.git`: a directory, a link to one, or a file that points to one.
    fn entry(&mut self, git: &Path) {
        let Ok(metadata) = git.metadata() else { return };
        if metadata.is_dir() {
            return self.git_directory(git);
        }
        let Some(text) = line_of(git) else { return };
        let Some(named) = text.strip_prefix("gitdir:") else { return };
        let level = git.parent().unwrap_or(Path::new("/"));
        self.git_directory(&level.join(named.trim()));
    }

    fn git_directory(&mut self, directory: &Path) {
        let Ok(directory) = directory.canonicalize() else { return };
        if !self.seen.insert(directory.clone()) {
            return;
        }
        if self.seen.len() > MAX_REPOSITORIES {
            if self.seen.len() == MAX_REPOSITORIES + 1 {
                self.reached.gaps.push("there are too many repositories".to_owned());
            }
            return;
        }
        let common = line_of(&directory.join("commondir")).map(|text| directory.join(text));
        for place in std::iter::once(&directory).chain(&common) {
            for name in ["config", "config.worktree"] {
                let before = self.reached.files.variables.len();
                self.reached.files.add(&place.join(name), self.ground.home, &|_, _| true);
                self.work_tree(&directory, before);
            }
        }
        // Submodules that are checked out point to these; so may `--git-dir`.
        for kind in ["modules", "worktrees"] {
            for below in &git_directories(&directory.join(kind)) {
                self.git_directory(below);
            }
        }
    }

    /// A work tree outside of the workspace may have repositories in it that were not looked for.
    fn work_tree(&mut self, directory: &Path, from: usize) {
        let set = self.reached.files.variables.iter().skip(from).map(|(_, variable)| variable);
        let named = set.filter(|variable| variable.section == "core" && variable.name == "worktree");
        let values: Vec<PathBuf> = named
            .filter_map(|variable| Some(directory.join(std::str::from_utf8(variable.value.as_deref()?).unwrap_or("/"))))
            .collect();
        for place in values {
            let is_outside = match place.canonicalize() {
                Ok(real) => !self.ground.roots.iter().any(|root| real.starts_with(root)),
                // Where there is none, git has nothing to do with it.
                Err(error) => error.kind() != ErrorKind::NotFound,
            };
            if is_outside {
                self.reached.gaps.push(format!("the configuration sets `{}` as the work tree", place.display()));
            }
        }
    }
}

/// Whether the index of a repository may have another repository in it, by the mode of such an entry. In doubt it may.
fn has_places_for_others(directory: &Path) -> bool {
    let mut indexes = vec![directory.join("index")];
    let others = std::fs::read_dir(directory).into_iter().flatten().flatten();
    indexes.extend(others.filter(|entry| entry.file_name().as_bytes().starts_with(b"sharedindex.")).map(|entry| entry.path()));
    indexes.iter().any(|index| match index.canonicalize() {
        Ok(real) => match open_file(&real) {
            Ok(file) => holds(file, OF_ANOTHER),
            Err(_) => true,
        },
        Err(error) => error.kind() != ErrorKind::NotFound,
    })
}

/// Whether the bytes are anywhere in a file; also where it is too large, or cannot be read.
fn holds(mut file: File, wanted: &[u8]) -> bool {
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

/// Whether git takes a directory for a repository.
fn is_git_directory(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

fn line_of(file: &Path) -> Option<String> {
    let mut text = Vec::new();
    open_file(&file.canonicalize().ok()?).ok()?.take(POINTER_BYTES).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_found_wherever_it_is_in_an_index() {
        let tree = tempfile::tempdir().unwrap();
        let index = tree.path().join("index");
        assert!(!has_places_for_others(tree.path()));
        for (before, found) in [(7, true), (CHUNK - 2, true), (3 * CHUNK - 1, true), (CHUNK, false)] {
            let mut bytes = vec![1; before];
            bytes.extend_from_slice(if found { OF_ANOTHER } else { &[0, 0, 0x81, 0xa4] });
            bytes.extend_from_slice(&[1; 9]);
            std::fs::write(&index, bytes).unwrap();
            assert_eq!(has_places_for_others(tree.path()), found, "{before}");
        }
        std::fs::remove_file(&index).unwrap();
        nix::unistd::mkfifo(&index, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(has_places_for_others(tree.path()));
    }

    #[test]
    fn the_configuration_of_every_repository_that_git_may_find_is_read() {
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
        let all = Everywhere::new(&roots);
        let ground = Ground {
            directory: &directory,
            roots: &roots,
            reads: false,
            into_submodules: false,
            home: None,
            known: None,
            all: Some(&all),
        };
        let Reached { files, gaps } = reached(&ground);
        let alone = reached(&Ground { reads: true, ..ground });
        assert!(alone.files.variables.len() < files.variables.len(), "no repository has a place for another");
        let named = files.variables.iter().filter_map(|(_, variable)| variable.subsection.as_deref());
        let mut named: Vec<&str> = named.map(|name| std::str::from_utf8(name).unwrap()).collect();
        named.sort_unstable();
        assert_eq!(named, ["bare", "pointed", "sub", "top", "tree"]);
        assert_eq!(gaps.len(), 1, "its work tree is somewhere else: {gaps:?}");
    }
}
