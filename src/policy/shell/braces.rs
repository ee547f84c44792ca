//! Brace expansion (`{a,b}` and `{1..9}`), which bash applies to the text of a word before any other expansion.

use super::arg::UNKNOWN;
use super::lexer::WordReader;
use super::word::Word;

/// Maximum number of words produced by the braces in one word.
const MAX_WORDS: usize = 8192;
const MAX_COPIED: usize = 400_000;
/// Maximum number of bytes examined when searching one word for braces.
const MAX_READ: usize = 4_000_000;
/// Maximum number of known words produced by a sequence; any further words are unknown.
const MAX_NUMBERS: usize = 64;
const DEPTH: usize = 64;

/// Returns the words produced by brace expansion of one word, or `None` if a limit is exceeded.
pub(crate) fn braces(word: &Word) -> Option<Vec<Word>> {
    if !word.raw.contains('{') {
        return Some(vec![word.clone()]);
    }
    let text = without_escapes(&word.raw);
    let texts = Expander::default().expand(&text, 0)?;
    if let [only] = texts.as_slice()
        && *only == text
    {
        return Some(vec![word.clone()]);
    }
    Some(texts.iter().map(|text| read_again(text)).collect())
}

/// Returns the number of words to which a plain list of names such as `src/{main,lib}.rs` expands. Returns `None` for
/// all other words, including those with several or nested lists, sequences, quotes, options or empty names.
pub(crate) fn plain_list_len(raw: &str) -> Option<usize> {
    let is_name = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-./@%+:".contains(letter));
    let (before, rest) = raw.split_once('{')?;
    let (inner, after) = rest.split_once('}')?;
    let names: Vec<&str> = inner.split(',').collect();
    let is_plain = |name: &&str| !name.is_empty() && is_name(name) && !name.contains("..");
    let is_list = (2..=MAX_NUMBERS).contains(&names.len()) && names.iter().all(is_plain);
    let is_option = before.starts_with('-') || before.is_empty() && names.iter().any(|name| name.starts_with('-'));
    (is_list && !is_option && is_name(before) && is_name(after)).then_some(names.len())
}

/// Parses text produced by brace expansion as a word.
fn read_again(text: &str) -> Word {
    let mut reader = WordReader::from_expanded(text);
    let word = reader.word();
    if reader.is_at_end() && !reader.unterminated && !reader.has_given_up() {
        return word;
    }
    WordReader::unknown_word(text)
}

/// Replaces each `$'…'` with the equivalent quoted text, and removes the `$` from `$"…"`. A shell does both when it
/// reads the word, before brace expansion.
fn without_escapes(raw: &str) -> String {
    if !raw.contains("$'") && !raw.contains("$\"") {
        return raw.to_owned();
    }
    let mut text = String::with_capacity(raw.len());
    let (mut at, mut copied) = (0, 0);
    while at < raw.len() {
        let rest = &raw.as_bytes()[at..];
        if rest.starts_with(b"$'") || rest.starts_with(b"$\"") {
            text.push_str(&raw[copied..at]);
            let mut reader = WordReader::new(raw);
            reader.at = at + 1;
            if rest[1] == b'\'' {
                let decoded = reader.ansi_text();
                text.push('\'');
                text.push_str(&decoded.replace('\'', "'\\''"));
                text.push('\'');
                at = reader.at;
                copied = at;
            } else {
                copied = at + 1;
                at = end_of_unit(raw, at + 1);
            }
        } else {
            at = end_of_unit(raw, at);
        }
    }
    text.push_str(&raw[copied..]);
    text
}

/// Returns the end of the quotation, escape, substitution, expansion or character that starts at `at`.
fn end_of_unit(text: &str, at: usize) -> usize {
    let mut reader = WordReader::from_expanded(text);
    reader.at = at;
    reader.skip_piece();
    reader.at.max(at + 1).min(text.len())
}

/// Character for which to search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchTarget {
    Open,
    Comma,
    Close,
}

#[derive(Default)]
struct Expander {
    words: usize,
    copied: usize,
    read: usize,
}

impl Expander {
    fn expand(&mut self, text: &str, depth: usize) -> Option<Vec<String>> {
        if depth > DEPTH {
            return None;
        }
        let Some((open, close)) = self.pair(text).ok()? else {
            return self.emit_words(vec![text.to_owned()]);
        };
        let inner = &text[open + 1..close];
        let middle = if has_comma(inner) {
            self.alternatives(inner, depth)?
        } else if let Some(words) = sequence(inner) {
            words
        } else if close + 1 < text.len() {
            // These braces are literal text. The text after them is still expanded.
            vec![text[open..=close].to_owned()]
        } else {
            return self.emit_words(vec![text.to_owned()]);
        };
        let endings = if close + 1 < text.len() { self.expand(&text[close + 1..], depth + 1)? } else { vec![String::new()] };
        let mut words = Vec::new();
        for one in &middle {
            for ending in &endings {
                self.copied += open + one.len() + ending.len() + 1;
                if self.copied > MAX_COPIED || words.len() >= MAX_WORDS {
                    return None;
                }
                words.push(format!("{}{one}{ending}", &text[..open]));
            }
        }
        self.emit_words(words)
    }

    fn emit_words(&mut self, words: Vec<String>) -> Option<Vec<String>> {
        self.words += words.len();
        (self.words <= MAX_WORDS * 4).then_some(words)
    }

    /// Returns the positions of the first pair of braces, or `None` if there is no such pair.
    fn pair(&mut self, text: &str) -> Result<Option<(usize, usize)>, TooLong> {
        let mut from = 0;
        loop {
            let Some(open) = self.seek(text, from, SearchTarget::Open)? else { return Ok(None) };
            if let Some(close) = self.seek(text, open + 1, SearchTarget::Close)? {
                return Ok(Some((open, close)));
            }
            from = open + 1;
        }
    }

    /// Returns the alternatives between the commas, after expanding each of them.
    fn alternatives(&mut self, inner: &str, depth: usize) -> Option<Vec<String>> {
        let mut words = Vec::new();
        let mut from = 0;
        loop {
            let comma = self.seek(inner, from, SearchTarget::Comma).ok()?;
            let one = &inner[from..comma.unwrap_or(inner.len())];
            words.extend(self.expand(one, depth + 1)?);
            if words.len() > MAX_WORDS {
                return None;
            }
            match comma {
                Some(comma) => from = comma + 1,
                None => return Some(words),
            }
        }
    }

    /// Returns the position of the next target character that is neither quoted nor inside nested braces. A `}` closes
    /// the braces only if a comma or `..` precedes it.
    fn seek(&mut self, text: &str, from: usize, sought: SearchTarget) -> Result<Option<usize>, TooLong> {
        let bytes = text.as_bytes();
        let (mut at, mut level, mut divided) = (from, 0_usize, sought != SearchTarget::Close);
        while at < bytes.len() {
            let byte = bytes[at];
            if matches!(byte, b'\\' | b'\'' | b'"' | b'`') || matches!(byte, b'$' | b'<' | b'>') && starts_unit(bytes, at) {
                let end = end_of_unit(text, at);
                self.read += end - at;
                at = end;
            } else {
                let found = match sought {
                    SearchTarget::Open => byte == b'{' && !is_standalone(bytes, at),
                    SearchTarget::Comma => byte == b',',
                    SearchTarget::Close => byte == b'}',
                };
                if found && level == 0 && divided {
                    return Ok(Some(at));
                }
                match byte {
                    b'{' if sought != SearchTarget::Open || level > 0 || !is_standalone(bytes, at) => level += 1,
                    b'}' if level > 0 => level -= 1,
                    b',' if sought == SearchTarget::Close && level == 0 => divided = true,
                    b'.' if sought == SearchTarget::Close && level == 0 => {
                        divided |= bytes.get(at + 1) == Some(&b'.') && bytes.get(at + 2) != Some(&b'}');
                    }
                    _ => {}
                }
                at += 1;
                self.read += 1;
            }
            if self.read > MAX_READ {
                return Err(TooLong);
            }
        }
        Ok(None)
    }
}

/// Indicates that a search for braces exceeded its limit.
struct TooLong;

/// Returns whether an expansion or a substitution, which brace expansion skips, starts at `at`.
fn starts_unit(bytes: &[u8], at: usize) -> bool {
    matches!((bytes[at], bytes.get(at + 1)), (b'$', Some(b'{' | b'(')) | (b'<' | b'>', Some(b'(')))
}

/// Returns whether `{}`, or a `{` followed by white space, begins a word. Such a brace does not start a brace
/// expansion.
fn is_standalone(bytes: &[u8], at: usize) -> bool {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
    let before = at == 0 || blank(&bytes[at - 1]);
    before && bytes.get(at + 1).is_some_and(|next| blank(next) || *next == b'}')
}

/// Returns whether the text contains an unescaped comma, quoted or not. Braces that contain a comma are not a sequence.
fn has_comma(inner: &str) -> bool {
    let mut escaped = false;
    inner.bytes().any(|byte| {
        let comma = byte == b',' && !escaped;
        escaped = byte == b'\\' && !escaped;
        comma
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Number(i64),
    Letter(u8),
}

/// Returns the words produced by a sequence such as `{a..e}`, `{1..9}` or `{01..20..2}`.
fn sequence(inner: &str) -> Option<Vec<String>> {
    let (from, rest) = inner.split_once("..")?;
    let (to, step) = match rest.split_once("..") {
        Some((to, step)) => (to, Some(step)),
        None => (rest, None),
    };
    let step = step.map_or(Some(1), number)?;
    let (first, last) = (parse_end(from)?, parse_end(to)?);
    match (first, last) {
        (End::Number(first), End::Number(last)) => {
            let padded = |text: &str| {
                let digits = text.strip_prefix('-').unwrap_or(text);
                digits.len() > 1 && digits.starts_with('0')
            };
            let width = if padded(from) || padded(to) { from.len().max(to.len()) } else { 0 };
            Some(
                steps(first, last, step)
                    .map(|value| value.map_or_else(unknown_word, |value| format!("{value:0width$}")))
                    .collect(),
            )
        }
        (End::Letter(first), End::Letter(last)) => {
            let letter = |value: i64| u8::try_from(value).ok().map_or_else(unknown_word, |byte| char::from(byte).to_string());
            Some(steps(i64::from(first), i64::from(last), step).map(|value| value.map_or_else(unknown_word, letter)).collect())
        }
        (End::Number(_), End::Letter(_)) | (End::Letter(_), End::Number(_)) => None,
    }
}

fn unknown_word() -> String {
    UNKNOWN.to_string()
}

fn parse_end(text: &str) -> Option<End> {
    match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(End::Letter(*letter)),
        _ => number(text).map(End::Number),
    }
}

/// Parses digits with at most one sign.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Returns the values of a sequence. If the sequence is too long, the last value is unknown.
fn steps(first: i64, last: i64, step: i64) -> impl Iterator<Item = Option<i64>> {
    let distance = i128::from(last) - i128::from(first);
    let width = i128::from(step).abs().max(1);
    let count = usize::try_from(distance.abs() / width + 1).unwrap_or(usize::MAX);
    let direction = if distance < 0 { -width } else { width };
    let value = move |nth: usize| i64::try_from(i128::from(first) + direction * nth as i128).ok();
    (0..count.min(MAX_NUMBERS)).map(value).chain((count > MAX_NUMBERS).then_some(None))
}
