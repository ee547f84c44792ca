//! Prompt history, stored in a file with one JSON string per line.

use super::line_file;
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of entries. Older entries are removed from the file only once it contains more than twice that
/// number.
const ENTRIES: usize = 1000;

/// Storage of the prompt history.
#[derive(Debug, Clone)]
pub(crate) struct HistoryOptions {
    /// History file; if absent, the history is only in memory.
    pub file: Option<PathBuf>,
    /// Redaction of prompts before they are saved.
    pub redactor: HistoryRedactor,
}

/// Function that removes secrets from a prompt before the prompt is added to the history.
#[derive(Clone)]
pub(crate) struct HistoryRedactor(pub Arc<dyn Fn(&str) -> String + Send + Sync>);

impl fmt::Debug for HistoryRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptAs")
    }
}

#[derive(Debug, Default)]
pub(crate) struct History {
    file: Option<PathBuf>,
    entries: Option<Vec<String>>,
    sent: Vec<String>,
    /// Index of the entry being shown, counted from the newest, and the draft that it replaced.
    browsing: Option<(usize, String)>,
    kept_as: Option<HistoryRedactor>,
}

impl History {
    /// Creates a history. Its file is not read until an entry is needed.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self { file, ..Self::default() }
    }

    /// Sets the function that removes secrets from prompts before they are saved.
    pub(crate) fn with_redactor(self, kept_as: HistoryRedactor) -> Self {
        Self { kept_as: Some(kept_as), ..self }
    }

    /// Returns a text as it is saved, without secrets.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.kept_as.as_ref().map_or_else(|| text.to_owned(), |HistoryRedactor(kept_as)| kept_as(text))
    }

    pub(crate) fn add(&mut self, prompt: &str) -> io::Result<()> {
        self.browsing = None;
        let list = self.entries.as_mut().unwrap_or(&mut self.sent);
        if list.last().is_some_and(|last| last == prompt) {
            return Ok(());
        }
        list.push(prompt.to_owned());
        let Some(path) = &self.file else { return Ok(()) };
        let mut line = serde_json::to_string(&self.redact(prompt))?;
        line.push('\n');
        line_file::append(path, &line)
    }

    /// Returns the entry before the one being shown, if there is one. The first call saves `draft`.
    pub(crate) fn previous(&mut self, draft: &str) -> Option<String> {
        let next = self.browsing.as_ref().map_or(0, |(at, _)| at + 1);
        let found = self.nth_newest(next)?;
        let draft = self.browsing.take().map_or_else(|| draft.to_owned(), |(_, draft)| draft);
        self.browsing = Some((next, draft));
        Some(found)
    }

    /// Returns the entry after the one being shown or, after the newest entry, the saved draft.
    pub(crate) fn following(&mut self) -> Option<String> {
        let (at, draft) = self.browsing.take()?;
        if at == 0 {
            return Some(draft);
        }
        let found = self.nth_newest(at - 1);
        self.browsing = Some((at - 1, draft));
        found
    }

    /// Makes the entry being shown the new draft because the user has edited it.
    pub(crate) fn adopt_shown(&mut self) {
        self.browsing = None;
    }

    pub(crate) fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// Returns the entries that start with `start`, newest first, without duplicates.
    pub(crate) fn starting_with(&mut self, start: &str) -> Vec<String> {
        let mut seen = HashSet::new();
        let entries = self.entries().iter().rev().filter(|entry| entry.starts_with(start));
        entries.filter(|entry| seen.insert(entry.as_str())).cloned().collect()
    }

    /// Returns an entry that contains `words`, ignoring case. `nth` is the index among the distinct matches, counted
    /// from the newest.
    pub(crate) fn find(&mut self, words: &str, nth: usize) -> Option<String> {
        let words = words.to_lowercase();
        let mut seen = HashSet::new();
        let entries = self.entries().iter().rev();
        entries.filter(|entry| entry.to_lowercase().contains(&words) && seen.insert(entry.as_str())).nth(nth).cloned()
    }

    fn nth_newest(&mut self, n: usize) -> Option<String> {
        let entries = self.entries();
        entries.len().checked_sub(n + 1).map(|at| entries[at].clone())
    }

    fn entries(&mut self) -> &[String] {
        self.entries.get_or_insert_with(|| {
            let mut entries = self.file.as_deref().map(load).unwrap_or_default();
            // Prompts sent earlier are already in the file, unless it could not be written.
            if self.file.is_none() || entries.is_empty() {
                entries = std::mem::take(&mut self.sent);
            }
            entries
        })
    }
}

/// Reads the entries from the file, and shortens the file if it is too long. Invalid lines are skipped, because two
/// processes may have written to the file at the same time.
fn load(path: &Path) -> Vec<String> {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let mut entries: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if entries.len() > 2 * ENTRIES {
        entries.drain(..entries.len() - ENTRIES);
        let lines: String =
            entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).map(|line| line + "\n").collect();
        // On failure, the old file remains valid, but longer than necessary.
        let _ = line_file::replace(path, &lines);
    }
    let older = entries.len().saturating_sub(ENTRIES);
    entries.split_off(older)
}

#[cfg(test)]
mod tests;
