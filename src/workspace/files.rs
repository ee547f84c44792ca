//! Fuzzy file search by path within a workspace. The file list respects git's ignore rules, is cached for a few
//! seconds and has a size limit.

use crate::protocol::FoundFile;
use crate::sys::ignore_files::{Lists, guard};
use crate::text::Fuzzy;
use ignore::{DirEntry, WalkBuilder, WalkState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Maximum number of listed paths. In a larger workspace, the remaining files cannot be found.
const MAX_PATHS: usize = 200_000;
/// Maximum number of search results.
const FOUND: usize = 50;
/// Age after which a cached list is used one last time and then rebuilt.
const CACHE_TTL: Duration = Duration::from_secs(3);
/// Approximate number of bytes per token.
pub(crate) const TOKEN_BYTES: u64 = 4;
/// Maximum size of a file that can be attached, in bytes.
const MAX_BYTES: u64 = 8 << 20;
/// Number of threads used to list files.
const WALKERS: usize = 2;
/// Number of paths after which a search checks whether a newer search has replaced it.
const STRETCH: usize = 4096;

/// File or folder. The path of a folder ends with `/`.
pub(crate) struct WorkspaceEntry {
    pub path: String,
    pub changed: Option<SystemTime>,
}

/// Files and folders found when the workspace was listed.
pub(crate) struct FileListing {
    pub entries: Vec<WorkspaceEntry>,
    at: Instant,
}

pub(crate) struct Files {
    workspace: PathBuf,
    listed: Mutex<Option<Arc<FileListing>>>,
    /// Number of searches so far, and the most recent search text.
    wanted: Mutex<(u64, String)>,
    /// Whether a listing is running.
    walking: AtomicBool,
}

impl Files {
    pub(crate) fn new(workspace: PathBuf) -> Self {
        Self { workspace, listed: Mutex::new(None), wanted: Mutex::default(), walking: AtomicBool::new(false) }
    }

    /// Sets the search text. Returns the search number to pass to `find`.
    pub(crate) fn want(&self, words: &str) -> u64 {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        *wanted = (wanted.0 + 1, words.to_owned());
        wanted.0
    }

    fn current_query(&self) -> (u64, String) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns all files and folders, from a list that is at most a few seconds old.
    pub(crate) fn list_all(&self) -> Arc<FileListing> {
        let kept = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listed) = kept.filter(|listed| listed.at.elapsed() < CACHE_TTL) {
            return listed;
        }
        let listed = Arc::new(FileListing { entries: walk(&self.workspace), at: Instant::now() });
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&listed));
        listed
    }

    /// Reports results from the cached list immediately. If that list is outdated, builds a new one and reports the
    /// results from it if they differ.
    pub(crate) fn find(&self, words: &str, number: u64, tell: &dyn Fn(&str, Vec<FoundFile>)) {
        let kept = self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut before = None;
        if let Some(listed) = &kept {
            let Some(found) = self.best(listed, words, number) else { return };
            tell(words, found.clone());
            before = Some(found);
        }
        if kept.is_some_and(|listed| listed.at.elapsed() < CACHE_TTL) || self.walking.swap(true, Ordering::AcqRel) {
            return;
        }
        let listed = Arc::new(FileListing { entries: walk(&self.workspace), at: Instant::now() });
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&listed));
        self.walking.store(false, Ordering::Release);
        // The search text may have changed while the files were listed, because a newer search does not start a
        // second listing.
        let (last, wanted) = self.current_query();
        let found = self.best(&listed, &wanted, last);
        if let Some(found) = found.filter(|found| last != number || before.as_ref() != Some(found)) {
            tell(&wanted, found);
        }
    }

    /// Returns the best results, or `None` if a newer search has started.
    fn best(&self, listed: &FileListing, words: &str, number: u64) -> Option<Vec<FoundFile>> {
        let found: Vec<&WorkspaceEntry> = if words.is_empty() {
            let mut files: Vec<&WorkspaceEntry> = listed.entries.iter().filter(|entry| !entry.path.ends_with('/')).collect();
            let last = files.len().min(FOUND);
            if files.len() > last {
                files.select_nth_unstable_by_key(last, |entry| std::cmp::Reverse(entry.changed));
                files.truncate(last);
            }
            files.sort_by(|one, two| two.changed.cmp(&one.changed).then_with(|| one.path.cmp(&two.path)));
            files
        } else {
            let mut fuzzy = Fuzzy::paths(words);
            let mut scored: Vec<(u32, &WorkspaceEntry)> = Vec::new();
            for entries in listed.entries.chunks(STRETCH) {
                if self.current_query().0 != number {
                    return None;
                }
                scored.extend(entries.iter().filter_map(|entry| Some((fuzzy.score(&entry.path)?, entry))));
            }
            let order = |(score, entry): &(u32, &WorkspaceEntry)| (std::cmp::Reverse(*score), entry.path.len());
            if scored.len() > FOUND {
                scored.select_nth_unstable_by_key(FOUND, order);
                scored.truncate(FOUND);
            }
            scored.sort_by(|one, two| order(one).cmp(&order(two)).then_with(|| one.1.path.cmp(&two.1.path)));
            scored.into_iter().map(|(_, entry)| entry).collect()
        };
        Some(found.into_iter().map(|entry| self.to_found_file(entry)).collect())
    }

    fn to_found_file(&self, entry: &WorkspaceEntry) -> FoundFile {
        let metadata = if entry.path.ends_with('/') { None } else { self.workspace.join(&entry.path).symlink_metadata().ok() };
        let bytes = metadata.filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        let tokens = bytes.filter(|bytes| *bytes <= MAX_BYTES).map(|bytes| bytes.div_ceil(TOKEN_BYTES));
        FoundFile { path: entry.path.clone(), tokens }
    }
}

/// Lists every file that git does not ignore, including hidden files. Symlinks are listed but not followed.
fn walk(workspace: &Path) -> Vec<WorkspaceEntry> {
    let (entries, count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let mut walk = WalkBuilder::new(workspace);
    walk.hidden(false).require_git(false).threads(WALKERS);
    guard(&mut walk, workspace, Lists::GitsAndOwn, |entry| entry.file_name() != ".git");
    let walk = walk.build_parallel();
    walk.run(|| {
        let mut mine = Batch { entries: &entries, own: Vec::new() };
        let count = &count;
        Box::new(move |entry| {
            // Unreadable entries are omitted.
            let Some(entry) = entry.ok().and_then(|entry| to_entry(workspace, &entry)) else { return WalkState::Continue };
            if count.fetch_add(1, Ordering::Relaxed) >= MAX_PATHS {
                return WalkState::Quit;
            }
            mine.own.push(entry);
            WalkState::Continue
        })
    });
    entries.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Entries found by a single thread, merged into `entries` when the thread ends.
struct Batch<'a> {
    entries: &'a Mutex<Vec<WorkspaceEntry>>,
    own: Vec<WorkspaceEntry>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.own);
    }
}

/// Returns an entry with its path relative to the workspace, or `None` if the path cannot be written in a prompt.
fn to_entry(workspace: &Path, entry: &DirEntry) -> Option<WorkspaceEntry> {
    let path = entry.path().strip_prefix(workspace).ok()?.to_str()?;
    if path.is_empty() || path.contains(|letter: char| letter.is_control() || letter == '"') {
        return None;
    }
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    let path = if is_folder { format!("{path}/") } else { path.to_owned() };
    let changed = if is_folder { None } else { entry.metadata().ok().and_then(|metadata| metadata.modified().ok()) };
    Some(WorkspaceEntry { path, changed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn find(files: &Files, words: &str) -> Vec<String> {
        let told = RefCell::new(Vec::new());
        files.find(words, files.want(words), &|_, found| *told.borrow_mut() = found);
        told.into_inner().into_iter().map(|file: FoundFile| file.path).collect()
    }

    fn workspace(paths: &[&str]) -> (tempfile::TempDir, Files) {
        let directory = tempfile::TempDir::new().unwrap();
        for path in paths {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "0123456789").unwrap();
        }
        let files = Files::new(directory.path().canonicalize().unwrap());
        (directory, files)
    }

    #[test]
    fn files_and_directories_are_found_by_fuzzy_match_and_ignored_files_are_not() {
        let (directory, files) =
            workspace(&["src/main.rs", "docs/größe.md", "my notes.md", "target/out", ".git/config", ".github/ci.yml"]);
        std::fs::write(directory.path().join(".gitignore"), "target\n").unwrap();
        assert_eq!(find(&files, "main"), ["src/main.rs"]);
        assert_eq!(find(&files, "größ"), ["docs/größe.md"]);
        assert_eq!(find(&files, "my no"), ["my notes.md"]);
        assert_eq!(find(&files, "src/")[0], "src/");
        assert_eq!(find(&files, "github")[0], ".github/");
        assert_eq!(find(&files, "config"), Vec::<String>::new());
        assert_eq!(find(&files, "out"), Vec::<String>::new());
        let told = RefCell::new(Vec::new());
        files.find("main", files.want("main"), &|_, found| *told.borrow_mut() = found);
        assert_eq!(told.into_inner()[0].tokens, Some(3));
    }

    #[test]
    fn an_empty_query_lists_recently_changed_files_first() {
        let (directory, files) = workspace(&["a", "b", "c"]);
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        for (path, seconds) in [("a", 10), ("b", 30), ("c", 20)] {
            let file = std::fs::File::options().write(true).open(directory.path().join(path)).unwrap();
            file.set_modified(old + Duration::from_secs(seconds)).unwrap();
        }
        assert_eq!(find(&files, ""), ["b", "c", "a"]);
    }

    #[test]
    fn only_the_latest_query_is_answered_even_if_an_earlier_one_built_the_list() {
        let (_directory, files) = workspace(&["apple", "pear"]);
        let told = RefCell::new(Vec::new());
        let first = files.want("p");
        files.want("pear");
        files.find("p", first, &|words, found| {
            told.borrow_mut().push((words.to_owned(), found.into_iter().map(|file| file.path).collect::<Vec<_>>()));
        });
        assert_eq!(told.into_inner(), [("pear".to_owned(), vec!["pear".to_owned()])]);
    }
}
