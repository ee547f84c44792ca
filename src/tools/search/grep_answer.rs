//! What a search in texts found, and how that is told.

use super::gather::Merge;
use super::grep_arguments::{MAX_RESULTS, Mode, Request};
use super::walk::InOrder;
use crate::tools::paths::shown;
use crate::tools::tool::Settings;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering as Memory};

/// Counted to; of more matches it is only said that there are more.
pub(super) const MAX_COUNTED: u64 = 100_000;

/// Matches so far of all threads: once there are more than are counted, what cannot be shown need not be searched.
#[derive(Default)]
pub(super) struct Counted(AtomicU64);

impl Counted {
    /// Whether that was the last that counts.
    pub(super) fn add(&self, matches: u64) -> bool {
        self.0.fetch_add(matches, Memory::Relaxed) + matches > MAX_COUNTED
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.load(Memory::Relaxed) > MAX_COUNTED
    }
}

/// A line as it is shown; `mark` tells one that matches from one around it.
pub(super) struct Line {
    pub number: u64,
    pub mark: char,
    pub text: String,
}

/// One match with the lines around it.
pub(super) struct Hit {
    pub lines: Vec<Line>,
}

/// What was found in one file: how many matches, and the first of them.
#[derive(Default)]
pub(super) struct FileHits {
    path: PathBuf,
    pub hits: Vec<Hit>,
    pub matches: u64,
}

impl PartialEq for FileHits {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for FileHits {}

impl PartialOrd for FileHits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FileHits {
    fn cmp(&self, other: &Self) -> Ordering {
        InOrder::compare(&self.path, &other.path)
    }
}

/// The first files and their matches, by path, as many as are shown; and how many there were of all.
pub(super) struct Hits {
    kept: BinaryHeap<FileHits>,
    mode: Mode,
    limit: usize,
    /// What the kept ones take of the limit.
    taken: usize,
    pub matches: u64,
    /// Files that are told of.
    pub files: u64,
    pub searched: u64,
}

impl Hits {
    pub(super) fn new(request: &Request) -> Self {
        let (mode, limit) = (request.mode, request.limit);
        Self { kept: BinaryHeap::new(), mode, limit, taken: 0, matches: 0, files: 0, searched: 0 }
    }

    fn weight(&self, file: &FileHits) -> usize {
        if self.mode == Mode::Content { file.hits.len() } else { 1 }
    }

    /// How many matches of this file could be shown.
    pub(super) fn room(&self, path: &Path) -> usize {
        if self.taken < self.limit || self.kept.peek().is_some_and(|last| InOrder::compare(path, &last.path).is_lt()) {
            self.limit
        } else {
            0
        }
    }

    /// What was found in one file.
    pub(super) fn add(&mut self, path: &Path, found: FileHits) {
        self.searched += 1;
        self.matches += found.matches;
        if (found.matches > 0) == (self.mode == Mode::FilesWithoutMatch) {
            return;
        }
        self.files += 1;
        if self.room(path) > 0 {
            self.keep(FileHits { path: path.to_owned(), ..found });
        }
    }

    fn keep(&mut self, file: FileHits) {
        self.taken += self.weight(&file);
        self.kept.push(file);
        while let Some(last) = self.kept.peek() {
            let without = self.taken - self.weight(last);
            if without < self.limit {
                break;
            }
            self.taken = without;
            self.kept.pop();
        }
    }

    fn into_shown(self) -> Vec<FileHits> {
        let mut files = self.kept.into_sorted_vec();
        let mut left = self.limit;
        for file in &mut files {
            file.hits.truncate(left);
            left -= file.hits.len();
        }
        files
    }
}

impl Merge for Hits {
    fn merge(&mut self, other: &mut Self) {
        self.matches += std::mem::take(&mut other.matches);
        self.files += std::mem::take(&mut other.files);
        self.searched += std::mem::take(&mut other.searched);
        for file in std::mem::take(&mut other.kept) {
            if self.room(&file.path) > 0 {
                self.keep(file);
            }
        }
    }
}

fn counted(matches: u64) -> String {
    if matches > MAX_COUNTED { format!("more than {MAX_COUNTED}") } else { matches.to_string() }
}

/// All of it as text; empty where nothing was found.
pub(super) fn answer(hits: Hits, request: &Request, settings: &Settings) -> String {
    let (matches, files, limit) = (hits.matches, hits.files, request.limit as u64);
    let narrow = if limit < u64::from(MAX_RESULTS) {
        format!("narrow `pattern`, `path` or `glob`, or raise `maxResults` (at most {MAX_RESULTS})")
    } else {
        "narrow `pattern`, `path` or `glob`".to_owned()
    };
    let note = match request.mode {
        Mode::Content if matches > limit => format!("[{limit} of {} matches shown; {narrow}]", counted(matches)),
        Mode::Count if files > limit && matches > MAX_COUNTED => {
            format!("[{limit} of more files shown, {} matches in all; {narrow}]", counted(matches))
        }
        Mode::Count if files > limit => format!("[{limit} of {files} files shown, {matches} matches in all; {narrow}]"),
        Mode::Files | Mode::FilesWithoutMatch if files > limit => format!("[{limit} of {files} files shown; {narrow}]"),
        Mode::Content | Mode::Count | Mode::Files | Mode::FilesWithoutMatch => String::new(),
    };
    let mut text = String::new();
    let around = request.before + request.after > 0;
    for (index, file) in hits.into_shown().into_iter().enumerate() {
        let name = shown(&file.path, settings);
        let mut last = None;
        for hit in &file.hits {
            let first = hit.lines.first().map_or(0, |line| line.number);
            let follows = last.is_some_and(|last| first <= last + 1);
            if around && !follows && (index > 0 || last.is_some()) {
                text.push_str("--\n");
            }
            for Line { number, mark, text: line } in &hit.lines {
                let _ = if request.numbers {
                    writeln!(text, "{name}{mark}{number}{mark}{line}")
                } else {
                    writeln!(text, "{name}{mark}{line}")
                };
                last = Some(*number);
            }
        }
        let _ = match request.mode {
            Mode::Content => Ok(()),
            Mode::Files | Mode::FilesWithoutMatch => writeln!(text, "{name}"),
            Mode::Count => writeln!(text, "{name}:{}", counted(file.matches)),
        };
    }
    text.push_str(&note);
    text.truncate(text.trim_end_matches('\n').len());
    text
}
