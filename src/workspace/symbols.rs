//! Fuzzy symbol search by name within a workspace. Files are read in the background and reread only after they
//! change.

use super::files::{Files, TOKEN_BYTES, WorkspaceEntry};
use super::symbol_scan::{Symbol, is_known, scan_symbols};
use crate::protocol::FoundSymbol;
use crate::sys::file::FileStamp;
use crate::text::Fuzzy;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of files to search. In a larger workspace, only the most recently changed files are searched.
const MAX_FILES: usize = 20_000;
const FILE_BYTES: u64 = 1 << 20;
/// Number of symbols after which a search stops reading further files.
const MAX_SYMBOLS: usize = 200_000;
/// Maximum number of search results.
const FOUND: usize = 50;
/// Interval at which results are reported while files are still being read.
const EVERY: Duration = Duration::from_millis(200);

#[derive(Clone)]
struct CachedFile {
    stamp: FileStamp,
    declared: Arc<[Symbol]>,
}

pub(crate) struct Symbols {
    workspace: PathBuf,
    known: Mutex<HashMap<String, CachedFile>>,
    /// Number of searches so far, and the most recent search text.
    wanted: Mutex<(u64, String)>,
}

impl Symbols {
    pub(crate) fn new(workspace: PathBuf) -> Self {
        Self { workspace, known: Mutex::default(), wanted: Mutex::default() }
    }

    /// Sets the search text. Returns the search number to pass to `find`.
    pub(crate) fn want(&self, words: &str) -> u64 {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        *wanted = (wanted.0 + 1, words.to_owned());
        wanted.0
    }

    fn is_wanted(&self, number: u64) -> bool {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).0 == number
    }

    /// Searches for `#name` in all files, or for `src/main.rs#name` in files whose path starts with `src/main.rs`.
    /// Reports results repeatedly while more files are read.
    pub(crate) fn find(&self, words: &str, number: u64, files: &Files, tell: &dyn Fn(Vec<FoundSymbol>)) {
        let (within, name) = words.rsplit_once('#').unwrap_or(("", words));
        let listed = files.list_all();
        let is_meant = |entry: &&WorkspaceEntry| is_known(&entry.path) && (within.is_empty() || entry.path.starts_with(within));
        let mut entries: Vec<&WorkspaceEntry> = listed.entries.iter().filter(is_meant).collect();
        if entries.len() > MAX_FILES {
            entries.select_nth_unstable_by_key(MAX_FILES, |entry| std::cmp::Reverse(entry.changed));
            entries.truncate(MAX_FILES);
        }
        entries.sort_by(|one, two| one.path.cmp(&two.path));
        let (mut best, mut fuzzy) = (Best::default(), Fuzzy::for_words(name));
        let (mut told, mut seen) = (Instant::now(), 0);
        for entry in entries {
            if !self.is_wanted(number) {
                return;
            }
            let declared = self.in_file(&entry.path);
            seen += declared.len();
            for one in declared.iter() {
                let score = if name.is_empty() { Some(0) } else { fuzzy.score(&one.name) };
                if let Some(score) = score {
                    best.add(score, &entry.path, one);
                }
            }
            if seen > MAX_SYMBOLS {
                break;
            }
            if told.elapsed() >= EVERY {
                told = Instant::now();
                tell(best.take_symbols());
            }
        }
        if self.is_wanted(number) {
            tell(best.take_symbols());
        }
    }

    /// Returns a file's declarations, from the cache if the file is unchanged. Returns an empty list if the file
    /// cannot be read.
    fn in_file(&self, path: &str) -> Arc<[Symbol]> {
        let full = self.workspace.join(path);
        let Ok(metadata) = full.symlink_metadata() else { return Arc::default() };
        if !metadata.is_file() || metadata.len() > FILE_BYTES {
            return Arc::default();
        }
        let stamp = FileStamp::from_metadata(&metadata);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(known) = known.filter(|known| known.stamp == stamp) {
            return known.declared;
        }
        let declared: Arc<[Symbol]> = text(&full).map(|text| scan_symbols(path, &text)).unwrap_or_default().into();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_FILES {
            known.clear();
        }
        known.insert(path.to_owned(), CachedFile { stamp, declared: Arc::clone(&declared) });
        declared
    }
}

fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    crate::sys::path::open_file(&path.canonicalize().ok()?).ok()?.take(FILE_BYTES).read_to_end(&mut bytes).ok()?;
    (!bytes.contains(&0)).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Best results so far; holds at most twice as many as are reported.
#[derive(Default)]
struct Best(Vec<(u32, FoundSymbol)>);

impl Best {
    fn add(&mut self, score: u32, path: &str, one: &Symbol) {
        if self.0.len() >= 2 * FOUND {
            self.keep_best();
            if self.0.last().is_some_and(|(least, _)| score < *least) {
                return;
            }
        }
        let symbol = FoundSymbol {
            name: one.name.clone(),
            kind: one.kind.clone(),
            path: path.to_owned(),
            first: one.first,
            last: one.last,
            tokens: one.bytes.div_ceil(TOKEN_BYTES),
        };
        self.0.push((score, symbol));
    }

    fn keep_best(&mut self) {
        let order = |(score, one): &(u32, FoundSymbol)| (std::cmp::Reverse(*score), one.name.chars().count());
        self.0.sort_by(|one, two| {
            let place = || (&one.1.path, one.1.first).cmp(&(&two.1.path, two.1.first));
            order(one).cmp(&order(two)).then_with(place)
        });
        self.0.truncate(FOUND);
    }

    fn take_symbols(&mut self) -> Vec<FoundSymbol> {
        self.keep_best();
        self.0.iter().map(|(_, symbol)| symbol.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn find(symbols: &Symbols, files: &Files, words: &str) -> Vec<String> {
        let told = RefCell::new(Vec::new());
        symbols.find(words, symbols.want(words), files, &|found| *told.borrow_mut() = found);
        told.into_inner().into_iter().map(|one| format!("{}:{} {}", one.path, one.first, one.name)).collect()
    }

    #[test]
    fn symbols_are_found_in_all_files_or_one_and_again_after_they_move() {
        let directory = tempfile::TempDir::new().unwrap();
        let workspace = directory.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| std::fs::write(workspace.join(path), text).unwrap();
        std::fs::create_dir(workspace.join("src")).unwrap();
        write("src/main.rs", "fn main() {}\n\nfn greet_all() {}\nfn greet() {}\n");
        write("tool.py", "def greet():\n    pass\n");
        write("notes.md", "fn greet() {}\n");
        write(".gitignore", "out.rs\n");
        write("out.rs", "fn greet() {}\n");
        let (symbols, files) = (Symbols::new(workspace.clone()), Files::new(workspace.clone()));
        assert_eq!(find(&symbols, &files, "#greet"), ["src/main.rs:4 greet", "tool.py:1 greet", "src/main.rs:3 greet_all"]);
        assert_eq!(find(&symbols, &files, "tool.py#"), ["tool.py:1 greet"]);
        assert_eq!(find(&symbols, &files, "src/#mn"), ["src/main.rs:1 main"]);
        assert_eq!(find(&symbols, &files, "#nothing"), [""; 0]);
        write("tool.py", "# moved\n\ndef greet():\n    pass\n");
        assert_eq!(find(&symbols, &files, "tool.py#gr"), ["tool.py:3 greet"]);
        let late = symbols.want("#a");
        symbols.want("#b");
        symbols.find("#a", late, &files, &|_| panic!("something else is wanted by now"));
    }
}
