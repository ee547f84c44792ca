//! Finds values whose names indicate secrets, in assignments, fields, headers and flags.

use super::key_names::{ValueKind, promise};
use super::value::{is_code, is_password, is_placeholder, is_random};
use super::{SecretSpan, header};
use crate::protocol::cut_position_after;

/// Maximum length of a name in bytes.
const NAME_BYTES: usize = 80;
const VALUE_BYTES: usize = 8 * 1024;

/// A name and its value within a text.
struct NamedValue<'a> {
    text: &'a str,
    name: &'a str,
    /// Byte offset of the name.
    at: usize,
    value: ValueSpan,
}

#[derive(Debug, Clone, Copy)]
struct ValueSpan {
    start: usize,
    end: usize,
    quoted: bool,
    link: Link,
}

/// Separator between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// `=` without spaces.
    Tight,
    /// `=` or `:` with a space.
    Loose,
    /// A space, or a word such as `is`.
    Bare,
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Returns the start and end of the name that contains position `at`.
fn name_at(text: &str, at: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let start = at - bytes[..at].iter().rev().take(NAME_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    let end = at + bytes[at..].iter().take(NAME_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    (start, end)
}

/// Checks the name that contains a trigger word, and its value. Returns the end of the name, so the caller does not
/// check the same name twice.
pub(super) fn find(text: &str, at: usize, spans: &mut Vec<SecretSpan>) -> usize {
    let (mut start, mut end) = name_at(text, at);
    let bytes = text.as_bytes();
    // `%3Dtoken`, `\ntoken`: the rest of an escape is not part of a name.
    if start >= 1 && bytes[start - 1] == b'\\' && start < at && matches!(bytes[start], b'n' | b'r' | b't') {
        start += 1;
    }
    while end > start && matches!(bytes[end - 1], b'.' | b'-') {
        end -= 1;
    }
    let name = text[start..end].trim_start_matches(['-', '.']);
    let Some(promise) = promise(name) else { return end.max(at + 1) };
    if let Some(value) = value_after(text, start, end) {
        let field = NamedValue { text, name, at: start, value };
        field.judge(promise, spans);
    }
    end.max(at + 1)
}

/// Returns the value that follows a name, skipping a closing quote or index and the separator. Returns `None` if no
/// value follows.
fn value_after(text: &str, name_start: usize, name_end: usize) -> Option<ValueSpan> {
    let bytes = text.as_bytes();
    let mut at = name_end;
    let mut closed = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' | b'`' | b']' => closed = true,
            b'\\' if matches!(bytes.get(at + 1), Some(b'"' | b'\'' | b'\\')) => {}
            _ => break,
        }
        at += 1;
    }
    let spaces = skip_spaces(bytes, at);
    // `<add key="ApiSecret" value="…" />`
    if closed && spaces > at && text[spaces..].starts_with("value") {
        return pair(text, spaces, closed, name_start);
    }
    let next = *bytes.get(spaces)?;
    match next {
        b'=' | b':' => {
            let mut after = spaces;
            while after < bytes.len() && after < spaces + 3 && matches!(bytes[after], b'=' | b':' | b'>') {
                after += 1;
            }
            let start = skip_spaces(bytes, after);
            // `"name": {"value": "…"}`
            if closed && bytes.get(start) == Some(&b'{') {
                return inner(text, start);
            }
            let link = if next == b'=' && spaces == at && start == after { Link::Tight } else { Link::Loose };
            if next == b':'
                && !closed
                && let Some(typed) = after_type(text, start)
            {
                return quoted(text, typed, Link::Loose);
            }
            value_at(text, start, link)
        }
        // `<password>value</password>`
        b'>' if !closed && name_start > 0 && bytes[name_start - 1] == b'<' => {
            let end = text[spaces + 1..].bytes().take(VALUE_BYTES).position(|byte| byte == b'<')?;
            let value = text[spaces + 1..spaces + 1 + end].trim();
            let start = spaces + 1 + text[spaces + 1..].find(value)?;
            Some(ValueSpan { start, end: start + value.len(), quoted: true, link: Link::Loose })
        }
        // `set("password", "value")`, `setPassword("value")`, `"name": "DB_PASSWORD", "value": "…"`
        b',' | b'(' | b'\n' | b'}' => pair(text, spaces, closed, name_start),
        _ if spaces > at => find_bare_value(text, name_start, spaces),
        _ => None,
    }
}

fn skip_spaces(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Returns the position of the quote that follows `: Type =`.
fn after_type(text: &str, at: usize) -> Option<usize> {
    const TYPE_BYTES: usize = 48;
    let bytes = text.as_bytes();
    // `Authorization: Digest username="…"`
    if text.get(at..at + 7).is_some_and(|word| word.eq_ignore_ascii_case("digest ")) {
        return None;
    }
    let length = bytes[at..].iter().take(TYPE_BYTES).position(|byte| matches!(byte, b'=' | b'"' | b'\'' | b'\n'))?;
    let quote = skip_spaces(bytes, at + length + 1);
    (bytes[at + length] == b'=' && length > 0 && matches!(bytes.get(quote), Some(b'"' | b'\'' | b'`'))).then_some(quote)
}

/// Returns the `value` field of a flat object.
fn inner(text: &str, at: usize) -> Option<ValueSpan> {
    const OBJECT_BYTES: usize = 256;
    let most = text.as_bytes()[at..].iter().take(OBJECT_BYTES).position(|byte| *byte == b'}')?;
    let field = text.get(at..at + most)?.find("\"value\"")?;
    value_after(text, at + field + 1, at + field + 6)
}

fn pair(text: &str, at: usize, closed: bool, name_start: usize) -> Option<ValueSpan> {
    let bytes = text.as_bytes();
    if bytes[at] == b'(' {
        let quote = skip_spaces(bytes, at + 1);
        return quoted(text, quote, Link::Bare);
    }
    let next = at + bytes[at..].iter().take_while(|byte| matches!(byte, b',' | b' ' | b'\t' | b'\n' | b'\r')).count();
    let rest = text[next..].trim_start_matches(['"', '\'', '\\']);
    let key = next + (text[next..].len() - rest.len());
    if rest.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("value")) {
        let line = text[..name_start].rfind('\n').map_or(0, |line| line + 1);
        let before = text[line..name_start].trim_end_matches(['"', '\'', '\\', ' ']).to_ascii_lowercase();
        if before.ends_with("name\":")
            || before.ends_with("name:")
            || before.ends_with("name=")
            || before.ends_with("key=")
            || before.ends_with("key\":")
            || before.ends_with("key:")
            || before.ends_with("name\\\":")
        {
            return value_after(text, key, key + 5);
        }
        return None;
    }
    (bytes[at] == b',' && closed).then(|| quoted(text, next, Link::Loose)).flatten()
}

/// Finds the value in `--token VALUE`, `password VALUE` or `the password is VALUE`.
fn find_bare_value(text: &str, name_start: usize, at: usize) -> Option<ValueSpan> {
    let flag = text[name_start..].starts_with("--") || text[name_start..].starts_with('-');
    let mut at = at;
    for word in ["is ", "was ", "are "] {
        if text[at..].starts_with(word) {
            at = skip_spaces(text.as_bytes(), at + word.len());
            at += usize::from(text[at..].starts_with(':'));
            at = skip_spaces(text.as_bytes(), at);
            break;
        }
    }
    let link = if flag { Link::Loose } else { Link::Bare };
    value_at(text, at, link)
}

fn value_at(text: &str, at: usize, link: Link) -> Option<ValueSpan> {
    let bytes = text.as_bytes();
    let mut start = at;
    // `b"…"`, `r'…'`, `@"…"`, `f"…"`
    if matches!(bytes.get(at), Some(b'b' | b'r' | b'f' | b'u' | b'@' | b'L')) && matches!(bytes.get(at + 1), Some(b'"' | b'\'')) {
        start += 1;
    }
    if let Some(value) = quoted(text, start, link) {
        return Some(value);
    }
    let end = unquoted_end(text, at);
    (end > at).then_some(ValueSpan { start: at, end, quoted: false, link })
}

fn quoted(text: &str, at: usize, link: Link) -> Option<ValueSpan> {
    let rest = text.get(at..)?;
    let marks = ["\\\\\"", "\\\"", "\"\"\"", "'''", "&quot;", "%22", "\"", "'", "`"];
    let mark = marks.iter().find(|mark| rest.starts_with(**mark))?;
    let start = at + mark.len();
    let inside = &text[start..];
    let bytes = inside.as_bytes();
    let mut end = 0;
    while end < bytes.len() && end < VALUE_BYTES && bytes[end] != b'\n' {
        if inside.is_char_boundary(end) && inside[end..].starts_with(mark) {
            break;
        }
        let escaped = bytes[end] == b'\\' && mark.len() == 1 && *mark != "'";
        end += if escaped && bytes.get(end + 1).is_some_and(|next| *next != b'\n') { 2 } else { 1 };
    }
    let end = cut_position_after(inside, end);
    Some(ValueSpan { start, end: start + end, quoted: true, link })
}

/// Returns the end of an unquoted value, which is at white space, a quote, or the start of the next field.
fn unquoted_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = at;
    while end < bytes.len() && end < at + VALUE_BYTES {
        match bytes[end] {
            byte if byte.is_ascii_whitespace() => break,
            b'"' | b'\'' | b'`' => break,
            b'\\' if matches!(bytes.get(end + 1), Some(b'n' | b'r' | b't' | b'"' | b'\\')) => break,
            b'&' | b';' | b',' | b'|' | b'#' if is_field_start(&bytes[end + 1..]) => break,
            _ => end += 1,
        }
    }
    let end = cut_position_after(text, end);
    let value = &text[at..end];
    at + value.trim_end_matches([',', ';', ')', '}', ']', '>', '|', '&']).trim_end_matches('.').len()
}

/// Returns whether the separator before `rest` separates two fields. This is the case if `rest` is empty, or begins
/// with punctuation or with a name and its separator.
fn is_field_start(rest: &[u8]) -> bool {
    let name = rest.iter().take(NAME_BYTES).take_while(|byte| is_name_byte(**byte) || **byte == b' ').count();
    match rest.get(name) {
        None => true,
        Some(byte) if name == 0 => byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b')' | b'}' | b']' | b'&' | b'|'),
        Some(byte) => matches!(byte, b'=' | b':') || (rest[0] == b' '),
    }
}

impl NamedValue<'_> {
    fn value(&self) -> &str {
        &self.text[self.value.start..self.value.end]
    }

    fn judge(&self, promise: ValueKind, spans: &mut Vec<SecretSpan>) {
        let value = self.value();
        match promise {
            ValueKind::Authorization => return header::credentials(self.text, self.value.start, self.line_end(), spans),
            ValueKind::Cookie => return header::cookies(self.text, self.value.start, self.line_end(), spans),
            ValueKind::Login => {
                if header::is_login(value) || (self.name.starts_with('_') && is_random(value, 16) && !is_placeholder(value)) {
                    self.hide("login", spans);
                }
                return;
            }
            ValueKind::Password | ValueKind::Secret | ValueKind::Token | ValueKind::Key => {}
        }
        // In a quoted text of several words, one random word makes the whole text a password.
        if promise == ValueKind::Password && self.value.quoted && value.split_whitespace().count() > 1 {
            let drawn = |word: &str| is_random(word, 8) && (has_digit_and_letter(word) || word.len() >= 16);
            if value.split_whitespace().count() <= 8 && value.split_whitespace().any(drawn) && !is_placeholder(value) {
                self.hide("password", spans);
            }
            return;
        }
        if is_placeholder(value) || value.contains(char::is_whitespace) || self.is_resource() {
            return;
        }
        // Program code refers to a secret but does not contain one.
        if self.is_code() {
            return;
        }
        let machine = |least| is_random(value, least);
        let holds = match (promise, self.value.link) {
            (ValueKind::Password, Link::Tight) => is_password(value) || (self.is_variable() && machine_letters(value)),
            (ValueKind::Password, Link::Loose) if self.value.quoted || self.is_field() => is_password(value),
            (ValueKind::Password, Link::Bare) => {
                machine(8)
                    || (is_password(value) && has_digit_and_letter(value) && value.len() >= 8 && !reads_like_version(value))
            }
            (ValueKind::Password, Link::Loose) => machine(8) || (is_password(value) && has_mark(value)),
            (ValueKind::Secret, Link::Bare) => machine(12),
            (ValueKind::Secret, _) => {
                machine(8) || (self.is_variable() && (machine_letters(value) || has_digit_and_letter(value) && value.len() >= 8))
            }
            (ValueKind::Token, Link::Bare) => machine(16),
            (ValueKind::Token, _) => machine(12) || (self.is_variable() && value.len() >= 16 && machine_letters(value)),
            (ValueKind::Key, _) => machine(16),
            (ValueKind::Authorization | ValueKind::Login | ValueKind::Cookie, _) => false,
        };
        if holds {
            self.hide(
                match promise {
                    ValueKind::Password => "password",
                    ValueKind::Secret => "secret",
                    ValueKind::Token | ValueKind::Authorization | ValueKind::Login | ValueKind::Cookie => "token",
                    ValueKind::Key => "key",
                },
                spans,
            );
        }
    }

    fn hide(&self, kind: &'static str, spans: &mut Vec<SecretSpan>) {
        spans.push(SecretSpan::named(self.value.start, self.value.end, kind));
    }

    fn line_end(&self) -> usize {
        if self.value.quoted {
            return self.value.end;
        }
        self.text[self.value.start..].find('\n').map_or(self.text.len(), |end| self.value.start + end)
    }

    /// Returns whether the field has the form `NAME=value` used in environment files, in which any value is valid.
    fn is_variable(&self) -> bool {
        self.value.link == Link::Tight && !self.name.bytes().any(|byte| byte.is_ascii_lowercase())
    }

    /// Returns whether the field is at the start of a line, as in `name: value`.
    fn is_field(&self) -> bool {
        let line = self.text[..self.at].rfind('\n').map_or(0, |line| line + 1);
        self.text[line..self.at].bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'-' | b'"' | b'\'' | b'{'))
    }

    /// Returns whether the value is part of a resource name. For example, `arn:aws:secretsmanager:…:secret:name` refers
    /// to a secret but does not contain it.
    fn is_resource(&self) -> bool {
        let word = self.text[..self.at].rsplit(|letter: char| letter.is_whitespace() || letter == '"').next().unwrap_or_default();
        word.starts_with("arn:") || word.contains(":arn:")
    }

    fn is_code(&self) -> bool {
        if self.value.quoted || self.is_variable() {
            return false;
        }
        let value = self.value();
        let after = self.text[self.value.end..].chars().next();
        let digits = value.bytes().filter(u8::is_ascii_digit).count();
        is_code(value) && !(digits >= 3 && is_random(value, 16) && !value.contains(['(', ')', '[', ']', '{', '}', '<', '>']))
            || matches!(after, Some('(' | '[' | '<'))
            || (value.starts_with(['&', '*', '!']) && !is_random(value, 12))
    }
}

/// Returns whether the value consists of at least 16 letters and digits and is not a plain number. No ordinary word has
/// this form.
fn machine_letters(value: &str) -> bool {
    value.len() >= 16
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !value.bytes().all(|byte| byte.is_ascii_digit())
}

fn has_digit_and_letter(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_digit()) && value.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn has_mark(value: &str) -> bool {
    value.bytes().any(|byte| b"!@#$%^&*?+~".contains(&byte)) && has_digit_and_letter(value)
}

/// Returns whether the value looks like a version, such as `v2.0.1-beta`, `sha256sum` or `step-12`.
fn reads_like_version(value: &str) -> bool {
    value.contains('.')
        || value.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') && value.contains('-')
}
