//! Fields of a word, and which of their parts are patterns or refer to a home directory.

use super::arg::Arg;
use super::names::assigned_name;
use super::word::{Word, WordPart};

/// Returns whether a word begins with a `~` that a shell expands. This requires that no character up to the first slash
/// is quoted.
pub(crate) fn has_tilde(word: &Word) -> bool {
    match word.pieces.as_slice() {
        [WordPart::Text { text, quoted: false }, rest @ ..] if text.starts_with('~') => {
            text.contains('/') || !matches!(rest.first(), Some(WordPart::Text { .. }))
        }
        _ => false,
    }
}

/// Returns whether a shell expands a `~` inside the word because the word looks like an assignment, as in `x=~/a` and
/// `x=a:~`.
pub(crate) fn assigns_tilde(word: &Word) -> bool {
    let Some(WordPart::Text { text, quoted: false }) = word.pieces.first() else { return false };
    if !text.contains('=') || assigned_name(text).is_none() {
        return false;
    }
    word.pieces
        .iter()
        .any(|piece| matches!(piece, WordPart::Text { text, quoted: false } if text.contains("=~") || text.contains(":~")))
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FieldSplitter {
    done: Vec<Arg>,
    pub current: Option<Arg>,
    /// Whether the current field contains an unquoted `*` or `?`.
    wild: bool,
    /// Position of the first unquoted `[`.
    bracket: Option<usize>,
}

impl FieldSplitter {
    pub(crate) fn push_literal(&mut self, text: &str, quoted: bool, tilde: bool) {
        let current = self.current.get_or_insert_with(Arg::default);
        current.tilde |= tilde;
        current.quoted |= quoted;
        let before = current.text.len();
        current.text.push_str(text);
        if !quoted {
            self.pattern(text, before);
        }
    }

    fn pattern(&mut self, text: &str, before: usize) {
        self.wild |= text.contains(['*', '?']);
        self.bracket = self.bracket.or_else(|| text.find('[').map(|at| before + at));
    }

    pub(crate) fn push_value(&mut self, elements: &[String], quoted: bool) {
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                self.close();
            }
            if quoted {
                self.push_literal(element, true, false);
                continue;
            }
            if element.starts_with([' ', '\t', '\n']) {
                self.close();
            }
            for (nth, field) in element.split_ascii_whitespace().enumerate() {
                if nth > 0 {
                    self.close();
                }
                let current = self.current.get_or_insert_with(Arg::default);
                let before = current.text.len();
                current.text.push_str(field);
                self.pattern(field, before);
            }
            if element.ends_with([' ', '\t', '\n']) {
                self.close();
            }
        }
    }

    /// Ends the current field. A `[` without a following `]` is an ordinary character.
    fn close(&mut self) {
        let (wild, bracket) = (std::mem::take(&mut self.wild), self.bracket.take());
        if let Some(mut arg) = self.current.take() {
            arg.glob = wild || bracket.is_some_and(|at| arg.text[at..].contains(']'));
            self.done.push(arg);
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Arg> {
        self.close();
        self.done
    }
}
