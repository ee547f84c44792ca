//! Reads shell words. Because a substitution in a word contains commands, this reader and the lexer's scanner call each
//! other.

use crate::policy::shell::escapes::{Style, decode};
use crate::policy::shell::word::{Parameter, Word, WordPart};
use std::cell::Cell;

/// Reads words from text and collects the content of all substitutions.
pub(crate) struct WordReader<'t> {
    pub text: &'t str,
    pub at: usize,
    pub substitutions: Vec<String>,
    /// Whether a quote or parenthesis is not closed.
    pub unterminated: bool,
    /// Whether the text is nested too deeply or takes too much work to read.
    pub exhausted: bool,
    /// Whether the text was produced by brace expansion, in which case `$'` and `$"` do not begin quotes.
    expanded: bool,
    depth: usize,
    work: Cell<usize>,
    /// Number of nested searches for a closing bracket.
    searches: Cell<usize>,
}

/// Operators that may follow the name in `${…}`. Each operator precedes any shorter one with which it begins.
const OPERATORS: &[&str] = &[
    ":-", ":=", ":?", ":+", "##", "%%", "//", "/#", "/%", "^^", ",,", ":", "-", "=", "?", "+", "#", "%", "/", "^", ",", "@",
    "~~", "~",
];
const DEPTH: usize = 32;
/// Maximum number of bytes examined when searching a text for closing brackets.
const WORK: usize = 4 * 1024 * 1024;

impl<'t> WordReader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            substitutions: Vec::new(),
            unterminated: false,
            exhausted: false,
            expanded: false,
            depth: 0,
            work: Cell::new(0),
            searches: Cell::new(0),
        }
    }

    /// Creates a reader for text produced by brace expansion.
    pub(crate) fn from_expanded(text: &'t str) -> Self {
        Self { expanded: true, ..Self::new(text) }
    }

    /// Returns a word whose value is unknown.
    pub(crate) fn unknown_word(raw: &str) -> Word {
        Word { raw: raw.to_owned(), pieces: vec![WordPart::Opaque] }
    }

    /// Creates a reader for nested text.
    fn child<'c>(&self, text: &'c str) -> WordReader<'c> {
        WordReader { depth: self.depth + 1, work: self.work.clone(), ..WordReader::new(text) }
    }

    fn absorb(&mut self, mut child: WordReader<'_>) {
        self.substitutions.append(&mut child.substitutions);
        self.exhausted |= child.exhausted;
        self.work = child.work;
    }

    pub(crate) fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(crate) fn starts_with(&self, prefix: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(prefix.as_bytes())
    }

    /// Reads up to the next unquoted space or operator.
    pub(crate) fn word(&mut self) -> Word {
        let start = self.at;
        let mut word = Word::default();
        while !self.is_at_end() {
            match self.byte(0) {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                b'(' => break,
                b'<' | b'>' if self.byte(1) == b'(' => {
                    self.at += 1;
                    self.substitution(&mut word, false);
                    word.pieces.pop();
                    word.pieces.push(WordPart::Opaque);
                }
                b'<' | b'>' => break,
                _ => self.piece(&mut word),
            }
        }
        self.text[start..self.at].clone_into(&mut word.raw);
        word
    }

    fn piece(&mut self, word: &mut Word) {
        match self.byte(0) {
            b'\'' => self.single_quotes(word),
            b'"' => {
                self.at += 1;
                self.double_quotes(word, b'"');
            }
            b'\\' if self.byte(1) == b'\n' => self.at += 2,
            b'\\' if self.at + 1 == self.text.len() => {
                // A backslash at the end of the text is literal.
                word.push_text("\\", true);
                self.at += 1;
            }
            b'\\' => {
                self.at += 1;
                self.character(word, true);
            }
            b'$' => self.dollar(word, false),
            b'`' => self.backticks(word, false),
            _ => self.character(word, false),
        }
    }

    fn character(&mut self, word: &mut Word, quoted: bool) {
        if let Some(character) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            word.push_text(character.encode_utf8(&mut [0; 4]), quoted);
            self.at += character.len_utf8();
        }
    }

    fn single_quotes(&mut self, word: &mut Word) {
        let from = self.at + 1;
        let end = self.text[from..].find('\'').map(|offset| from + offset);
        self.unterminated |= end.is_none();
        let end = end.unwrap_or(self.text.len());
        word.push_text(&self.text[from..end], true);
        self.at = (end + 1).min(self.text.len());
    }

    /// Reads double-quoted text up to `close`. If `close` is 0, reads to the end of the text, as for a here-document.
    pub(crate) fn double_quotes(&mut self, word: &mut Word, close: u8) {
        word.push_text("", true);
        loop {
            if self.is_at_end() {
                self.unterminated |= close != 0;
                return;
            }
            match self.byte(0) {
                found if found == close && close != 0 => {
                    self.at += 1;
                    return;
                }
                b'\\' if self.byte(1) == b'\n' => self.at += 2,
                b'\\' if matches!(self.byte(1), b'$' | b'`' | b'"' | b'\\') => {
                    self.at += 1;
                    self.character(word, true);
                }
                b'$' => self.dollar(word, true),
                b'`' => self.backticks(word, true),
                _ => self.character(word, true),
            }
        }
    }

    fn dollar(&mut self, word: &mut Word, quoted: bool) {
        match self.byte(1) {
            b'(' if self.arithmetic_end(self.at + 1).is_some() => {
                let end = self.arithmetic_end(self.at + 1).unwrap_or(self.text.len());
                let inner = &self.text[self.at + 3..end - 2];
                self.inside(inner);
                if could_be_commands(inner) {
                    self.substitutions.push(inner.to_owned());
                }
                word.pieces.push(WordPart::Opaque);
                self.at = end;
            }
            b'(' => {
                self.at += 1;
                self.substitution(word, quoted);
            }
            b'[' => {
                let end = self.text[self.at..].find(']').map_or(self.text.len(), |offset| self.at + offset + 1);
                let inner = &self.text[self.at + 2..end];
                self.inside(inner);
                word.pieces.push(WordPart::Opaque);
                self.at = end;
            }
            b'{' => self.braced_parameter(word, quoted),
            b'\'' if !quoted && !self.expanded => {
                self.at += 1;
                self.ansi_quotes(word);
            }
            b'"' if !quoted && !self.expanded => {
                self.at += 2;
                self.double_quotes(word, b'"');
            }
            next if next.is_ascii_alphabetic() || next == b'_' => {
                let name: String =
                    self.text[self.at + 1..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                self.at += 1 + name.len();
                word.pieces.push(WordPart::Parameter { parameter: Parameter { name, ..Parameter::default() }, quoted });
            }
            next if next.is_ascii_digit() || b"@*#?-$!".contains(&next) => {
                let all = next == b'@' || (next == b'*' && !quoted);
                let name = char::from(next).to_string();
                word.pieces.push(WordPart::Parameter { parameter: Parameter { name, all, ..Parameter::default() }, quoted });
                self.at += 2;
            }
            _ => self.character(word, quoted),
        }
    }

    /// Collects the substitutions in arithmetic, or in text that is expanded as if it were quoted.
    pub(crate) fn inside(&mut self, inner: &str) {
        let mut reader = self.child(inner);
        if reader.depth > DEPTH {
            self.exhausted = true;
            return;
        }
        reader.double_quotes(&mut Word::default(), 0);
        self.absorb(reader);
    }

    /// Reads a substitution from its opening parenthesis, which follows `$` or `<`.
    fn substitution(&mut self, word: &mut Word, quoted: bool) {
        let end = self.substitution_end(self.at);
        self.unterminated |= end.is_none();
        let end = end.unwrap_or(self.text.len());
        let inner = self.text[self.at + 1..end.max(self.at + 1)].to_owned();
        self.substitutions.push(inner.clone());
        word.pieces.push(WordPart::Substitution { inner, quoted });
        self.at = (end + 1).min(self.text.len());
    }

    fn backticks(&mut self, word: &mut Word, quoted: bool) {
        let mut inner = String::new();
        let mut at = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut segment = at;
        while at < bytes.len() && bytes[at] != b'`' {
            if bytes[at] == b'\\' && at + 1 < bytes.len() && matches!(bytes[at + 1], b'`' | b'\\' | b'$') {
                inner.push_str(&self.text[segment..at]);
                at += 1;
                segment = at;
            }
            at += 1;
        }
        let at = at.min(bytes.len());
        inner.push_str(self.text.get(segment..at).unwrap_or_default());
        self.unterminated |= at >= bytes.len();
        self.substitutions.push(inner.clone());
        word.pieces.push(WordPart::Substitution { inner, quoted });
        self.at = (at + 1).min(bytes.len());
    }

    fn braced_parameter(&mut self, word: &mut Word, quoted: bool) {
        let end = self.closing(self.at + 1, b'{', b'}');
        self.unterminated |= end.is_none();
        let end = end.unwrap_or(self.text.len());
        let inner = &self.text[(self.at + 2).min(end)..end];
        let parameter = self.parameter(inner);
        word.pieces.push(WordPart::Parameter { parameter, quoted });
        self.at = (end + 1).min(self.text.len());
    }

    fn parameter(&mut self, inner: &str) -> Parameter {
        let mut parameter = Parameter::default();
        let mut rest = inner;
        if let Some(after) = rest.strip_prefix('!').filter(|after| !after.is_empty()) {
            parameter.indirect = true;
            rest = after;
        } else if rest.len() > 1 && rest.starts_with('#') {
            "#".clone_into(&mut parameter.operator);
            "#".clone_into(&mut parameter.name);
            return parameter;
        }
        let named = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let named = if named == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { named };
        rest[..named].clone_into(&mut parameter.name);
        rest = &rest[named..];
        parameter.all = parameter.name == "@" || parameter.name == "*";
        parameter.star = parameter.name == "*";
        if rest.starts_with('[') {
            let (subscript, after) = rest.split_once(']').unwrap_or((rest, ""));
            parameter.all = subscript == "[@" || subscript == "[*";
            parameter.star = subscript == "[*";
            self.inside(subscript);
            rest = after;
        }
        let length = OPERATORS.iter().find(|operator| rest.starts_with(**operator)).map_or(0, |operator| operator.len());
        rest[..length].clone_into(&mut parameter.operator);
        if !rest[length..].is_empty() {
            let mut reader = self.child(&rest[length..]);
            if reader.depth > DEPTH {
                self.exhausted = true;
                return parameter;
            }
            let mut operand = Word { raw: rest[length..].to_owned(), pieces: Vec::new() };
            while !reader.is_at_end() {
                reader.piece(&mut operand);
            }
            self.absorb(reader);
            parameter.operand = Some(Box::new(operand));
        }
        parameter
    }

    /// Reads `$'…'` from its opening quote and decodes its ANSI-C escapes.
    fn ansi_quotes(&mut self, word: &mut Word) {
        let text = self.ansi_text();
        word.push_text(&text, true);
    }

    /// Returns the text of `$'…'`, reading from the opening quote. A shell finds the closing quote before it decodes
    /// escapes.
    pub(crate) fn ansi_text(&mut self) -> String {
        let from = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut end = from;
        while end < bytes.len() && bytes[end] != b'\'' {
            end += 1 + usize::from(bytes[end] == b'\\');
        }
        self.unterminated |= end >= bytes.len();
        let end = end.min(bytes.len());
        self.at = (end + 1).min(bytes.len());
        decode(self.text.get(from..end).unwrap_or_default(), Style::Quotes)
    }

    /// Skips one quotation, escape, substitution, expansion or character.
    pub(crate) fn skip_piece(&mut self) {
        match (self.byte(0), self.byte(1)) {
            (b'<' | b'>', b'(') => {
                self.at += 1;
                self.substitution(&mut Word::default(), false);
            }
            _ => self.piece(&mut Word::default()),
        }
    }

    /// Returns the end of the `((…))` that starts at `open`, or `None` if its parentheses are not closed together.
    pub(crate) fn arithmetic_end(&self, open: usize) -> Option<usize> {
        if self.text.as_bytes().get(open + 1) != Some(&b'(') {
            return None;
        }
        let inner = self.closing(open + 1, b'(', b')')?;
        (self.text.as_bytes().get(inner + 1) == Some(&b')')).then_some(inner + 2)
    }

    /// Returns the position of the unquoted bracket that matches the opening bracket before `from`.
    fn closing(&self, from: usize, open: u8, close: u8) -> Option<usize> {
        if self.searches.get() > DEPTH || self.work.get() > WORK {
            self.work.set(WORK + 1);
            return None;
        }
        self.searches.set(self.searches.get() + 1);
        let found = self.find_closing(from, open, close);
        self.searches.set(self.searches.get() - 1);
        self.work.set(self.work.get() + found.unwrap_or(self.text.len()).saturating_sub(from));
        found
    }

    /// Returns whether the search for brackets was aborted.
    pub(crate) fn has_given_up(&self) -> bool {
        self.exhausted || self.work.get() > WORK
    }

    fn find_closing(&self, from: usize, open: u8, close: u8) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let (mut depth, mut at, mut doubled) = (0_usize, from, false);
        while at < bytes.len() {
            match bytes[at] {
                b'\\' => at += 1,
                b'$' if bytes.get(at + 1) == Some(&b'(') => {
                    at = match self.arithmetic_end(at + 1) {
                        Some(end) => end - 1,
                        None => self.substitution_end(at + 1)?,
                    };
                }
                b'\'' if !doubled => at = self.find_byte(b'\'', at + 1)?,
                b'`' => at = self.find_byte(b'`', at + 1)?,
                b'"' => doubled = !doubled,
                b'{' if open == b'{' => depth += usize::from(at == from || bytes[at - 1] == b'$'),
                b'(' if open == b'(' && !doubled => depth += 1,
                byte if byte == close && (!doubled || depth > 1) => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    }

    fn find_byte(&self, wanted: u8, from: usize) -> Option<usize> {
        self.text.as_bytes().iter().skip(from).position(|byte| *byte == wanted).map(|offset| from + offset)
    }

    /// Returns the position of the parenthesis that closes the one at `open`. The content is parsed as commands,
    /// because `case` patterns, comments and here-documents may contain parentheses too.
    fn substitution_end(&self, open: usize) -> Option<usize> {
        if self.depth > DEPTH || self.work.get() > WORK {
            self.work.set(WORK + 1);
            return None;
        }
        let inside = WordReader { at: open + 1, ..self.child(self.text) };
        let (end, work) = super::closing(inside);
        self.work.set(work + end.unwrap_or(self.text.len()).saturating_sub(open));
        end
    }

    pub(crate) fn work(&self) -> usize {
        self.work.get()
    }
}

/// Returns whether the content of `((…))` may be commands rather than arithmetic.
pub(crate) fn could_be_commands(inner: &str) -> bool {
    inner.contains([';', '\n'])
}
