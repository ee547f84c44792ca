//! Collects and formats the results of a text search.

use super::grep_arguments::{GrepMode, GrepRequest, MAX_RESULTS};
use super::page::PageText;
use super::top_k::Merge;
use super::walk::InOrder;
use crate::protocol::ToolError;
use crate::tools::call_result::ToolOutput;
use crate::tools::paths::display_path;
use crate::tools::settings::ToolSettings;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering as Memory};

/// Maximum number of matches to count.
pub(super) const MAX_COUNTED: u64 = 100_000;

/// Number of matches that all threads have found. Beyond the limit, a file is not searched if its matches could not be
/// shown anyway.
#[derive(Default)]
pub(super) struct MatchCount(AtomicU64);

impl MatchCount {
    /// Adds matches. Returns whether the limit has been exceeded.
    pub(super) fn add(&self, matches: u64) -> bool {
        self.0.fetch_add(matches, Memory::Relaxed) + matches > MAX_COUNTED
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.load(Memory::Relaxed) > MAX_COUNTED
    }
}

/// A line to show. `mark` distinguishes matching lines from context.
pub(super) struct GrepLine {
    pub number: u64,
    pub mark: char,
    pub text: String,
}

/// One match, with its context.
pub(super) struct Hit {
    pub lines: Vec<GrepLine>,
}

/// Results in one file: the number of matches, and the first few of them.
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

/// The first files in path order with their matches, and the totals.
pub(super) struct Hits {
    kept: BinaryHeap<FileHits>,
    mode: GrepMode,
    limit: usize,
    /// Number of results in `kept`.
    taken: usize,
    pub matches: u64,
    /// Number of files with results.
    pub files: u64,
    pub searched: u64,
}

impl Hits {
    pub(super) fn new(request: &GrepRequest) -> Self {
        let (mode, limit) = (request.mode, request.page.required_items());
        Self { kept: BinaryHeap::new(), mode, limit, taken: 0, matches: 0, files: 0, searched: 0 }
    }

    fn weight(&self, file: &FileHits) -> usize {
        if self.mode == GrepMode::Content { file.hits.len() } else { 1 }
    }

    /// Returns how many of this file's matches can be shown.
    pub(super) fn remaining_capacity(&self, path: &Path) -> usize {
        if self.taken < self.limit || self.kept.peek().is_some_and(|last| InOrder::compare(path, &last.path).is_lt()) {
            self.limit
        } else {
            0
        }
    }

    /// Adds the results of one file.
    pub(super) fn add(&mut self, path: &Path, found: FileHits) {
        self.searched += 1;
        self.matches += found.matches;
        if (found.matches > 0) == (self.mode == GrepMode::FilesWithoutMatch) {
            return;
        }
        self.files += 1;
        if self.remaining_capacity(path) > 0 {
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

    fn into_shown_files(self) -> Vec<FileHits> {
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
            if self.remaining_capacity(&file.path) > 0 {
                self.keep(file);
            }
        }
    }
}

fn count_text(matches: u64) -> String {
    if matches > MAX_COUNTED { format!("more than {MAX_COUNTED}") } else { matches.to_string() }
}

/// Suggests to the model how to get fewer, or more, results.
fn ways_to_narrow(limit: usize) -> String {
    if limit < MAX_RESULTS as usize {
        format!("narrow `pattern`, `path` or `glob`, raise `maxResults` (at most {MAX_RESULTS})")
    } else {
        "narrow `pattern`, `path` or `glob`".to_owned()
    }
}

/// Formats the results within the size limit. Returns `None` if there are none.
pub(super) fn answer(
    hits: Hits,
    request: &GrepRequest,
    settings: &ToolSettings,
    max_bytes: usize,
) -> Result<Option<ToolOutput>, ToolError> {
    let (matches, files, page) = (hits.matches, hits.files, request.page);
    let narrow = ways_to_narrow(page.limit);
    let (total, of) = match request.mode {
        GrepMode::Content => (matches, format!("{} matches shown", count_text(matches))),
        GrepMode::Count if matches > MAX_COUNTED => {
            (files, format!("more files shown, {} matches in total", count_text(matches)))
        }
        GrepMode::Count => (files, format!("{files} files shown, {matches} matches in total")),
        GrepMode::Files | GrepMode::FilesWithoutMatch => (files, format!("{files} files shown")),
    };
    if total == 0 {
        return Ok(None);
    }
    let mut list = PageText::new(page, max_bytes);
    let mut before = page.skipped_items();
    let around = request.before + request.after > 0;
    'files: for file in hits.into_shown_files() {
        let name = display_path(&file.path, settings);
        if request.mode != GrepMode::Content {
            if before > 0 {
                before -= 1;
                continue;
            }
            let item = if request.mode == GrepMode::Count {
                format!("{name}:{}\n", count_text(file.matches))
            } else {
                format!("{name}\n")
            };
            if !list.push(&item) {
                break;
            }
            continue;
        }
        let mut last = None;
        for hit in &file.hits {
            if before > 0 {
                before -= 1;
                continue;
            }
            let first = hit.lines.first().map_or(0, |line| line.number);
            let follows = last.is_some_and(|last| first <= last + 1);
            let mut item = String::new();
            if around && !follows && !list.is_empty() {
                item.push_str("--\n");
            }
            for GrepLine { number, mark, text } in &hit.lines {
                let _ = if request.numbers {
                    writeln!(item, "{name}{mark}{number}{mark}{text}")
                } else {
                    writeln!(item, "{name}{mark}{text}")
                };
                last = Some(*number);
            }
            if !list.push(&item) {
                break 'files;
            }
        }
    }
    if list.is_empty() {
        return Err(page.past_the_end(total, if request.mode == GrepMode::Content { "matches" } else { "files" }));
    }
    Ok(Some(list.into_output(total, &of, &narrow)))
}
