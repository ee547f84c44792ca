//! Prompt history in one of the user's files, one JSON string per line.

use super::line_file;
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of entries. Older entries are removed from the file once it has twice as many.
const ENTRIES: usize = 1000;

/// Storage of the prompt history.
#[derive(Debug, Clone)]
pub(crate) struct HistoryOptions {
    /// History file; if absent, the history is only in memory.
    pub file: Option<PathBuf>,
    /// Redaction of prompts before they are saved.
    pub redactor: HistoryRedactor,
}

/// Function that removes secrets from a prompt before it is saved in the history.
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
    /// Index of the visible entry, counted back from the newest, and the draft that it replaced.
    browsing: Option<(usize, String)>,
    kept_as: Option<HistoryRedactor>,
}

impl History {
    /// Creates a history that reads its file when the first entry is requested.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        Self { file, ..Self::default() }
    }

    /// Sets the function that redacts prompts before they are saved.
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

    /// Returns the entry before the visible one, and stores `draft`.
    pub(crate) fn previous(&mut self, draft: &str) -> Option<String> {
        let next = self.browsing.as_ref().map_or(0, |(at, _)| at + 1);
        let found = self.nth_newest(next)?;
        let draft = self.browsing.take().map_or_else(|| draft.to_owned(), |(_, draft)| draft);
        self.browsing = Some((next, draft));
        Some(found)
    }

    /// Returns the entry after the visible one, or the stored draft after the newest entry.
    pub(crate) fn following(&mut self) -> Option<String> {
        let (at, draft) = self.browsing.take()?;
        if at == 0 {
            return Some(draft);
        }
        let found = self.nth_newest(at - 1);
        self.browsing = Some((at - 1, draft));
        found
    }

    /// Turns the visible entry into a draft, because the user edited it.
    pub(crate) fn adopt_shown(&mut self) {
        self.browsing = None;
    }

    pub(crate) fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// Returns the entries that begin with this text, newest first and without duplicates.
    pub(crate) fn starting_with(&mut self, start: &str) -> Vec<String> {
        let mut seen = HashSet::new();
        let entries = self.entries().iter().rev().filter(|entry| entry.starts_with(start));
        entries.filter(|entry| seen.insert(entry.as_str())).cloned().collect()
    }

    /// Returns the nth newest entry that contains the words, ignoring case and duplicates.
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
            // Prompts sent since then are already in the file, unless it could not be written.
            if self.file.is_none() || entries.is_empty() {
                entries = std::mem::take(&mut self.sent);
            }
            entries
        })
    }
}

/// Reads the file. Lines that are not JSON strings are skipped, because two processes may write at the same time.
fn load(path: &Path) -> Vec<String> {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let mut entries: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if entries.len() > 2 * ENTRIES {
        entries.drain(..entries.len() - ENTRIES);
        let lines: String =
            entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).map(|line| line + "\n").collect();
        // On failure the old file remains valid, but longer than necessary.
        let _ = line_file::replace(path, &lines);
    }
    let older = entries.len().saturating_sub(ENTRIES);
    entries.split_off(older)
}

#[cfg(test)]
mod tests;
