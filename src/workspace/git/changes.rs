//! Counts uncommitted changes by reading the index file. Git itself is never run, because the project's configuration
//! could make it run other programs. This module does not act on that configuration.

use super::Repository;
use super::index_diff::{CommittedTree, Hash, Trees};
use crate::sys::git_index::read_index;
use crate::sys::ignore_files::{Lists, guard};
use ignore::WalkBuilder;
use sha1::{Digest, Sha1};
use std::collections::HashSet;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum size of the index, in bytes. Reading a larger index would take too long for a hint.
const INDEX_BYTES: u64 = 32 << 20;
/// Maximum size of a file to hash, in bytes.
const FILE_BYTES: u64 = 4 << 20;
/// Maximum size of the git configuration file, in bytes.
const CONFIG_BYTES: u64 = 64 << 10;
/// Maximum number of files checked for being untracked.
const FILES: usize = 20_000;
/// Time limit for counting changes.
const TIME: Duration = Duration::from_millis(100);

/// Number of files that are untracked or differ from the last commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GitChanges {
    pub files: usize,
    /// Whether the actual number may be higher.
    pub more: bool,
}

impl GitChanges {
    /// Returns a description such as `3 uncommitted changes`, or `None` if there are no changes.
    pub(crate) fn describe(self) -> Option<String> {
        let least = if self.more { "at least " } else { "" };
        match self.files {
            0 => None,
            1 => Some(format!("{least}1 uncommitted change")),
            files => Some(format!("{least}{files} uncommitted changes")),
        }
    }
}

/// Index entry for a file.
struct Entry {
    path: PathBuf,
    mtime: (u32, u32),
    mode: u32,
    bytes: u32,
    hash: Hash,
    /// Whether the file is unmerged, or was added with `--intent-to-add`.
    open: bool,
    /// Whether git was told to ignore changes to the file.
    unwatched: bool,
}

/// Files in the index, and what is needed to compare them with the last commit and the work tree.
struct Index {
    entries: Vec<Entry>,
    committed: CommittedTree,
    look: IndexComparison,
}

impl Repository {
    /// Reads the index. Returns `None` if there is none or only git can read it.
    fn index(&self) -> Option<Index> {
        let config = read_small(&self.common.join("config"), CONFIG_BYTES).unwrap_or_default();
        let config = String::from_utf8_lossy(&config).to_ascii_lowercase().replace([' ', '\t'], "");
        if config.contains("objectformat=sha256") {
            return None;
        }
        let index = self.git.join("index");
        let written = index.symlink_metadata().ok()?;
        let (entries, trees) = entries(&read_small(&index, INDEX_BYTES)?)?;
        let look = IndexComparison {
            // If git converts file content, only git can tell whether a file has changed.
            converts: config.contains("autocrlf=") || self.level.join(".gitattributes").exists(),
            modes: !config.contains("filemode=false"),
            written: seconds(written.mtime()),
        };
        let committed = CommittedTree::for_commit(self, &trees);
        Some(Index { entries, committed, look })
    }

    /// Counts the files that a commit would contain: those that are staged and, with `all`, every changed file that git
    /// tracks. Returns `None` if the number is uncertain or zero.
    pub(crate) fn files_to_commit(&self, all: bool) -> Option<usize> {
        let began = Instant::now();
        let Index { entries, committed, look } = self.index()?;
        if committed.unknown || all && look.converts {
            return None;
        }
        let paths: HashSet<&Path> = entries.iter().map(|entry| entry.path.as_path()).collect();
        let mut count = committed.deleted_files(&paths).count();
        for entry in &entries {
            if began.elapsed() > TIME {
                return None;
            }
            let is_staged = !committed.has(&entry.path, &entry.hash);
            count += usize::from(is_staged || all && look.is_changed(&self.level.join(&entry.path), entry));
        }
        (count > 0).then_some(count)
    }

    /// Counts the changed files below the workspace. Returns `None` if there is no index or only git can read it.
    pub(crate) fn changes(&self, workspace: &Path) -> Option<GitChanges> {
        let began = Instant::now();
        let Index { entries, committed, look } = self.index()?;
        let (mut known, mut changed, mut more) = (HashSet::new(), HashSet::new(), committed.unknown);
        let index: HashSet<&Path> = entries.iter().map(|entry| entry.path.as_path()).collect();
        changed
            .extend(committed.deleted_files(&index).map(|path| self.level.join(path)).filter(|path| path.starts_with(workspace)));
        for entry in &entries {
            let path = self.level.join(&entry.path);
            if path.starts_with(workspace) {
                if began.elapsed() > TIME {
                    more = true;
                } else if !committed.has(&entry.path, &entry.hash) || look.is_changed(&path, entry) {
                    changed.insert(path.clone());
                }
            }
            known.insert(path);
        }
        let mut walk = WalkBuilder::new(workspace);
        // Rules that hide a file from searches do not hide it from git.
        guard(walk.hidden(false).ignore(false), workspace, Lists::Gits, |entry| entry.file_name() != ".git");
        let files = walk.build().filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir()));
        for (count, entry) in files.enumerate() {
            if count >= FILES || began.elapsed() > TIME {
                more = true;
                break;
            }
            if !known.contains(entry.path()) {
                changed.insert(entry.into_path());
            }
        }
        Some(GitChanges { files: changed.len(), more })
    }
}

struct IndexComparison {
    converts: bool,
    modes: bool,
    /// Time at which the index was written. A file with the same or a later time may have changed since then.
    written: u32,
}

impl IndexComparison {
    fn is_changed(&self, path: &Path, entry: &Entry) -> bool {
        if entry.unwatched {
            return false;
        }
        let Ok(now) = path.symlink_metadata() else { return true };
        let is_link = entry.mode & 0o170_000 == 0o120_000;
        let executable = entry.mode & 0o100 != 0;
        let other_kind = if is_link { !now.is_symlink() } else { !now.is_file() };
        if entry.open || other_kind || !is_link && self.modes && executable != (now.mode() & 0o100 != 0) {
            return true;
        }
        if now.len() as u32 != entry.bytes {
            return true;
        }
        let same_time = (seconds(now.mtime()), seconds(now.mtime_nsec())) == entry.mtime;
        if same_time && entry.mtime.0 < self.written || self.converts {
            return false;
        }
        hash(path, &now).is_some_and(|hash| hash != entry.hash)
    }
}

/// Returns a time as stored by git: the lower 32 bits of the seconds.
fn seconds(time: i64) -> u32 {
    time as u32
}

/// Returns a file's git hash, or `None` if hashing the file would take too long for a hint.
fn hash(path: &Path, now: &Metadata) -> Option<Hash> {
    let content =
        if now.is_symlink() { path.read_link().ok()?.as_os_str().as_bytes().to_vec() } else { read_small(path, FILE_BYTES)? };
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(&content);
    Some(hash.finalize().into())
}

/// Returns the content of a regular file, or `None` if the file is unreadable or larger than `most` bytes.
fn read_small(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    crate::sys::path::open_file(path).ok()?.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// Parses an index file. Returns `None` if the index is split or invalid.
fn entries(index: &[u8]) -> Option<(Vec<Entry>, Trees)> {
    let mut entries = Vec::new();
    let rest = read_index(index, |entry| {
        let mode = entry.status(6);
        // Skips submodules and the directories of a sparse index. No path may point outside the repository.
        let is_file = matches!(mode & 0o170_000, 0o100_000 | 0o120_000);
        if is_file && entry.path.components().all(|part| matches!(part, Component::Normal(_))) {
            entries.push(Entry {
                path: entry.path.to_owned(),
                mtime: (entry.status(2), entry.status(3)),
                mode,
                bytes: entry.status(9),
                hash: entry.hash,
                open: entry.flags & 0x3000 != 0 || entry.extended & 0x2000 != 0,
                unwatched: entry.flags & 0x8000 != 0 || entry.extended & 0x4000 != 0,
            });
        }
    })?;
    Some((entries, Trees::parse(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::git_index::FIXED;
    use std::process::Command;

    fn git(directory: &Path, words: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]).args(words);
        git.current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let output = git.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn changes_are_counted_like_git_status_for_every_index_version() {
        if Command::new("git").arg("--version").output().is_err() {
            eprintln!("skipped: there is no git");
            return;
        }
        for version in ["2", "3", "4"] {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().canonicalize().unwrap();
            let write = |name: &str, text: &str| {
                let path = root.join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            let count = |below: &str| Repository::find(&root).unwrap().changes(&root.join(below)).unwrap();
            git(&root, &["init", "-q"]);
            for name in ["a.txt", "src/b.rs", "src/deep/c.rs", "src/deep/größe.md", "x/1", "x/2"] {
                write(name, "one\n");
            }
            write(".gitignore", "target\n");
            write("target/built", "x");
            std::os::unix::fs::symlink("a.txt", root.join("link")).unwrap();
            git(&root, &["add", "."]);
            assert_eq!(count(""), GitChanges { files: 8, more: false }, "{version}: nothing is committed");
            git(&root, &["commit", "-q", "-m", "one"]);
            if version == "3" {
                write("announced.txt", "x\n");
                git(&root, &["add", "-N", "announced.txt"]);
            }
            git(&root, &["update-index", "--index-version", version]);
            let announced = usize::from(version == "3");
            assert_eq!(count(""), GitChanges { files: announced, more: false }, "{version}");
            // Writing the same content again is not a change, even though the modification time differs.
            write("x/1", "one\n");
            write("a.txt", "two\n");
            write("src/b.rs", "longer than before\n");
            std::fs::remove_file(root.join("x/2")).unwrap();
            write("src/new.rs", "new\n");
            write(".hidden", "new\n");
            assert_eq!(count("").files, 5 + announced, "{version}");
            assert_eq!(count("src").files, 2, "{version}");
            std::fs::remove_file(root.join("link")).unwrap();
            std::os::unix::fs::symlink("b.txt", root.join("link")).unwrap();
            assert_eq!(count("").files, 6 + announced, "{version}");
            // The changes are staged but not committed.
            git(&root, &["add", "-A"]);
            assert_eq!(count(""), GitChanges { files: 6 + announced, more: false }, "{version}");
            assert_eq!(count("x"), GitChanges { files: 1, more: false }, "{version}");
            git(&root, &["commit", "-q", "-m", "two"]);
            assert_eq!(count(""), GitChanges { files: 0, more: false }, "{version}");
            // For a mere hint, packed objects are not read.
            write("a.txt", "three\n");
            git(&root, &["gc", "-q"]);
            assert_eq!(count(""), GitChanges { files: 1, more: false }, "{version}");
            git(&root, &["add", "-A"]);
            assert!(count("").more, "{version}");
        }
    }

    #[test]
    fn the_files_of_a_commit_are_those_staged_and_with_all_those_changed() {
        if Command::new("git").arg("--version").output().is_err() {
            eprintln!("skipped: there is no git");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        let count = |all| Repository::find(&root).unwrap().files_to_commit(all);
        git(&root, &["init", "-q"]);
        for name in ["a", "b", "c"] {
            write(name, name);
        }
        git(&root, &["add", "a", "b", "c"]);
        assert_eq!(count(false), Some(3), "the first commit");
        git(&root, &["commit", "-qm", "first"]);
        assert_eq!((count(false), count(true)), (None, None));
        write("a", "changed");
        write("b", "also changed");
        write("new", "untracked");
        assert_eq!((count(false), count(true)), (None, Some(2)));
        git(&root, &["add", "a"]);
        git(&root, &["rm", "-q", "c"]);
        assert_eq!((count(false), count(true)), (Some(2), Some(3)));
    }

    #[test]
    fn invalid_index_files_yield_none() {
        let fixed = [vec![0_u8; FIXED - 1], vec![b"../../etc/passwd".len() as u8]].concat();
        let entry = [fixed, b"../../etc/passwd\0".to_vec(), vec![0; 8]].concat();
        let head = |version: u8, count: u8| [b"DIRC".to_vec(), vec![0, 0, 0, version, 0, 0, 0, count]].concat();
        for bytes in [vec![], b"DIRC".to_vec(), head(5, 0), head(2, 1), head(4, 200), [head(2, 9), entry.clone()].concat()] {
            assert!(entries(&bytes).is_none(), "{bytes:?}");
        }
        assert!(entries(&[head(2, 1), entry].concat()).is_some_and(|(entries, _)| entries.is_empty()));
    }

    #[test]
    fn a_clean_work_tree_has_no_description() {
        let words = |files, more| GitChanges { files, more }.describe();
        assert_eq!(words(0, true), None);
        assert_eq!(words(1, false).unwrap(), "1 uncommitted change");
        assert_eq!(words(3, true).unwrap(), "at least 3 uncommitted changes");
    }
}
