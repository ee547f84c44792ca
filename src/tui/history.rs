//! The prompts sent before, one JSON string a line in a file of the person's own.

use super::interface::HistoryRedactor;
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// Older ones are left out, and dropped from the file when it has twice as many.
const ENTRIES: usize = 1000;

#[derive(Debug, Default)]
pub struct History {
    file: Option<PathBuf>,
    entries: Option<Vec<String>>,
    sent: Vec<String>,
    /// Which entry is shown, counted back from the newest, and the draft that it took the place of.
    browsing: Option<(usize, String)>,
    kept_as: Option<HistoryRedactor>,
}

impl History {
    /// The file is read when an entry is asked for, not before.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, ..Self::default() }
    }

    /// What the file is given in the place of a prompt.
    pub fn kept_as(self, kept_as: HistoryRedactor) -> Self {
        Self { kept_as: Some(kept_as), ..self }
    }

    pub fn add(&mut self, prompt: &str) -> io::Result<()> {
        self.browsing = None;
        let list = self.entries.as_mut().unwrap_or(&mut self.sent);
        if list.last().is_some_and(|last| last == prompt) {
            return Ok(());
        }
        list.push(prompt.to_owned());
        let Some(path) = &self.file else { return Ok(()) };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let kept = self.kept_as.as_ref().map_or_else(|| prompt.to_owned(), |HistoryRedactor(kept_as)| kept_as(prompt));
        let mut line = serde_json::to_string(&kept)?;
        line.push('\n');
        options.open(path)?.write_all(line.as_bytes())
    }

    /// The entry before the one shown; `draft` is kept for the way back.
    pub fn older(&mut self, draft: &str) -> Option<String> {
        let next = self.browsing.as_ref().map_or(0, |(at, _)| at + 1);
        let found = self.nth_newest(next)?;
        let draft = self.browsing.take().map_or_else(|| draft.to_owned(), |(_, draft)| draft);
        self.browsing = Some((next, draft));
        Some(found)
    }

    /// The entry after the one shown, at last the draft.
    pub fn newer(&mut self) -> Option<String> {
        let (at, draft) = self.browsing.take()?;
        if at == 0 {
            return Some(draft);
        }
        let found = self.nth_newest(at - 1);
        self.browsing = Some((at - 1, draft));
        found
    }

    /// What is shown has been changed: it is a draft of its own now.
    pub fn leave(&mut self) {
        self.browsing = None;
    }

    pub fn is_browsing(&self) -> bool {
        self.browsing.is_some()
    }

    /// Those that begin with this, the newest first and each once.
    pub fn with(&mut self, start: &str) -> Vec<String> {
        let mut seen = HashSet::new();
        let entries = self.entries().iter().rev().filter(|entry| entry.starts_with(start));
        entries.filter(|entry| seen.insert(entry.as_str())).cloned().collect()
    }

    /// The nth newest with these words in it, whatever their case; the same prompt counts once.
    pub fn find(&mut self, words: &str, nth: usize) -> Option<String> {
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
            let mut entries = self.file.as_ref().map(load).unwrap_or_default();
            // What was sent meanwhile stands in the file already, unless it could not be written.
            if self.file.is_none() || entries.is_empty() {
                entries = std::mem::take(&mut self.sent);
            }
            entries
        })
    }
}

/// A line that is no JSON string is passed over: two processes may write at once.
fn load(path: &PathBuf) -> Vec<String> {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let mut entries: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if entries.len() > 2 * ENTRIES {
        entries.drain(..entries.len() - ENTRIES);
        let lines: String =
            entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).map(|line| line + "\n").collect();
        let beside = path.with_extension("new");
        // The old file is as good; only its length was to be kept small.
        let _ = fs::write(&beside, lines).and_then(|()| fs::rename(&beside, path));
    }
    let older = entries.len().saturating_sub(ENTRIES);
    entries.split_off(older)
}

#[cfg(test)]
mod tests;
