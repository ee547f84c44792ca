//! Syntax colours of source code, found by a thread of their own so that no frame waits for them.

mod grammars;
mod scope;
mod worker;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::styled_text::{SpanStyle, StyledText};
use super::theme::{Syntax, Token};

pub use worker::{on_let_go, on_progress};

/// Longest piece of code, in lines, and longest line, in bytes, that gets colours.
const LINES: usize = 5000;
const LINE: usize = 2000;

/// The end of a run of bytes and what it is.
type Run = (u16, Option<Syntax>);

/// One piece of source code, coloured from its first line on as far as it was asked for.
///
/// Its owner tells it which lines are wanted and sees the colours when they are there; until then lines are plain.
pub struct Track {
    shared: Arc<Shared>,
    /// Lines already handed to the thread.
    asked: usize,
}

struct Shared {
    language: String,
    lines: Mutex<Vec<Box<[Run]>>>,
    parser: Mutex<Option<worker::Parser>>,
}

impl Track {
    /// `language` is what stands after a fence (`rust`, `py`), a file name or its ending.
    pub fn new(language: &str) -> Self {
        let shared = Shared { language: language.to_owned(), lines: Mutex::default(), parser: Mutex::default() };
        Self { shared: Arc::new(shared), asked: 0 }
    }

    pub fn for_path(path: &Path) -> Self {
        let name = path.extension().or_else(|| path.file_name());
        Self::new(&name.map(|name| name.to_string_lossy()).unwrap_or_default())
    }

    /// Asks for the colours of the first `count` lines; `text` gives the lines of a range that was never asked for.
    pub fn want(&mut self, count: usize, text: impl FnOnce(Range<usize>) -> Vec<String>) {
        let count = count.min(LINES);
        if count <= self.asked || self.shared.language.is_empty() {
            return;
        }
        let lines = text(self.asked..count);
        self.asked += lines.len();
        worker::send(&self.shared, lines);
    }

    /// How many lines have their colours.
    pub fn coloured(&self) -> usize {
        locked(&self.shared.lines).len()
    }

    /// One line in its colours, or plain while they are not known.
    pub fn ink(&self, index: usize, line: &str, ground: Token) -> StyledText {
        let lines = locked(&self.shared.lines);
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

/// A lock that outlives a panic: what it guards is only colours.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub use worker::settle;

#[cfg(test)]
mod tests;
