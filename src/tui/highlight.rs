//! Syntax highlighting, which runs on a separate thread so it does not delay frames.

mod grammars;
mod scope;
mod worker;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::styled_text::{SpanStyle, StyledText};
use super::theme::{Syntax, Token};

pub(crate) use worker::{on_grammars_freed, on_progress};

/// Maximum number of lines that are highlighted per block. [`LINE`] is the maximum length of a highlighted line, in
/// bytes.
const LINES: usize = 5000;
const LINE: usize = 2000;

/// End of a byte range in a line, and the syntax kind of that range.
type Run = (u16, Option<Syntax>);

/// Block of source code that is highlighted from its first line up to the last requested one.
///
/// Requested lines are shown without colours until their highlighting is complete.
pub(crate) struct HighlightedBlock {
    shared: Arc<SharedLines>,
    /// Number of lines whose highlighting has been requested.
    asked: usize,
}

struct SharedLines {
    language: String,
    lines: Mutex<Vec<Box<[Run]>>>,
    parser: Mutex<Option<worker::Parser>>,
}

impl HighlightedBlock {
    /// Creates a block. `language` is a file name, a file extension, or the info string of a code fence, such as `rust`
    /// or `py`.
    pub(crate) fn new(language: &str) -> Self {
        let shared = SharedLines { language: language.to_owned(), lines: Mutex::default(), parser: Mutex::default() };
        Self { shared: Arc::new(shared), asked: 0 }
    }

    pub(crate) fn for_path(path: &Path) -> Self {
        let name = path.extension().or_else(|| path.file_name());
        Self::new(&name.map(|name| name.to_string_lossy()).unwrap_or_default())
    }

    /// Requests highlighting of the first `count` lines. `text` must return the text of the given range, which consists
    /// of lines that have not been requested before.
    pub(crate) fn want(&mut self, count: usize, text: impl FnOnce(Range<usize>) -> Vec<String>) {
        let count = count.min(LINES);
        if count <= self.asked || self.shared.language.is_empty() {
            return;
        }
        let lines = text(self.asked..count);
        self.asked += lines.len();
        worker::send(&self.shared, lines);
    }

    /// Returns the number of lines that have been highlighted.
    pub(crate) fn highlighted_lines(&self) -> usize {
        lock_ignoring_poison(&self.shared.lines).len()
    }

    /// Returns a line in its syntax colours, or as plain code if it has not been highlighted yet. `ground` determines
    /// the background.
    pub(crate) fn ink(&self, index: usize, line: &str, ground: Token) -> StyledText {
        let lines = lock_ignoring_poison(&self.shared.lines);
        let mut inked = StyledText::default();
        let mut at = 0;
        for (end, syntax) in lines.get(index).map(Box::as_ref).unwrap_or_default() {
            let end = usize::from(*end);
            let Some(part) = line.get(at..end) else { break };
            inked.push(part, SpanStyle::code(*syntax, ground));
            at = end;
        }
        inked.push(line.get(at..).unwrap_or_default(), SpanStyle::code(None, ground));
        inked
    }
}

/// Locks a mutex even if it is poisoned, because the worst consequence is wrong colours.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) use worker::wait_until_idle;

#[cfg(test)]
mod tests;
