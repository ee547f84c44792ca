//! Tracks files that are open in the editor: which content there may be outdated, and which updates have yet to be
//! sent.

use crate::protocol::CallId;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

/// Maximum number of files for which content is recorded, and of versions recorded for each of them.
const MAX_FILES: usize = 1024;
const MAX_TEXTS: usize = 64;
/// Maximum number of calls whose writes have not been recorded in the journal yet.
const MAX_CALLS: usize = 256;

/// How the editor's text of a file relates to the text on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BufferState {
    Same,
    /// The editor still has the text, without edits, from before aye wrote to the file.
    Behind,
    Unsaved,
}

#[derive(Default)]
pub(super) struct BufferStates {
    /// Hashes of content on disk that aye has overwritten since the editor's text and the disk were last equal.
    before: HashMap<PathBuf, VecDeque<blake3::Hash>>,
    /// Paths that calls or a rewind have written, oldest first.
    written: VecDeque<(Option<CallId>, Vec<PathBuf>)>,
}

impl BufferStates {
    pub(super) fn compare(&mut self, real: &Path, disk: blake3::Hash, buffer: blake3::Hash) -> BufferState {
        if disk == buffer {
            // From now on, any other text is an edit by the user.
            self.before.remove(real);
            return BufferState::Same;
        }
        let was_there = self.before.get(real).is_some_and(|texts| texts.contains(&buffer));
        if was_there { BufferState::Behind } else { BufferState::Unsaved }
    }

    /// Records that this call, or a rewind if `call` is `None`, is about to write these files.
    pub(super) fn begin_write(&mut self, call: Option<CallId>, files: Vec<(PathBuf, blake3::Hash)>) {
        if files.is_empty() {
            return;
        }
        for (real, text) in &files {
            if self.before.len() >= MAX_FILES
                && !self.before.contains_key(real)
                && let Some(one) = self.before.keys().next().cloned()
            {
                self.before.remove(&one);
            }
            let texts = self.before.entry(real.clone()).or_default();
            texts.push_back(*text);
            if texts.len() > MAX_TEXTS {
                texts.pop_front();
            }
        }
        self.written.push_back((call, files.into_iter().map(|(real, _)| real).collect()));
        if self.written.len() > MAX_CALLS {
            self.written.pop_front();
        }
    }

    /// Removes the paths that the call wrote from the record and returns them.
    pub(super) fn take_written(&mut self, call: Option<&CallId>) -> Vec<PathBuf> {
        let (own, others) = std::mem::take(&mut self.written).into_iter().partition(|(of, _)| of.as_ref() == call);
        self.written = others;
        let own: VecDeque<(Option<CallId>, Vec<PathBuf>)> = own;
        own.into_iter().flat_map(|(_, files)| files).collect()
    }

    /// Records that the editor's text equals the text on disk.
    pub(super) fn mark_synced(&mut self, real: &Path) {
        self.before.remove(real);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_content_counts_as_outdated_until_the_editor_reloads_and_then_as_unsaved() {
        let [one, two, three] = ["1", "2", "3"].map(|text| blake3::hash(text.as_bytes()));
        let (mut known, real) = (BufferStates::default(), Path::new("/w/a"));
        assert_eq!(known.compare(real, one, two), BufferState::Unsaved);
        known.begin_write(Some(CallId::new("c")), vec![(real.to_owned(), one)]);
        known.begin_write(Some(CallId::new("d")), vec![(real.to_owned(), two)]);
        assert_eq!(
            (known.compare(real, three, one), known.compare(real, three, two)),
            (BufferState::Behind, BufferState::Behind)
        );
        assert_eq!(known.compare(real, three, three), BufferState::Same);
        assert_eq!(known.compare(real, three, one), BufferState::Unsaved);
    }

    #[test]
    fn paths_written_by_a_call_are_returned_once_and_only_for_that_call() {
        let (mut known, text) = (BufferStates::default(), blake3::hash(b""));
        known.begin_write(Some(CallId::new("c")), vec![("/w/a".into(), text)]);
        known.begin_write(None, vec![("/w/b".into(), text)]);
        assert_eq!(known.take_written(Some(&CallId::new("x"))), [] as [PathBuf; 0]);
        assert_eq!(known.take_written(Some(&CallId::new("c"))), [PathBuf::from("/w/a")]);
        assert_eq!(known.take_written(Some(&CallId::new("c"))), [] as [PathBuf; 0]);
        assert_eq!(known.take_written(None), [PathBuf::from("/w/b")]);
    }

    #[test]
    fn buffer_states_are_bounded() {
        let (mut known, text) = (BufferStates::default(), blake3::hash(b""));
        for number in 0..2 * MAX_FILES {
            known.begin_write(Some(CallId::new(number.to_string())), vec![(format!("/w/{number}").into(), text)]);
            known.begin_write(None, vec![("/w/same".into(), text)]);
        }
        assert!(known.before.len() <= MAX_FILES && known.written.len() <= MAX_CALLS);
        assert!(known.before.values().all(|texts| texts.len() <= MAX_TEXTS));
    }
}
