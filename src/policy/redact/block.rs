//! Finds private keys in the form of line blocks.

use std::ops::Range;

/// Beginning of the line that opens a block.
pub(super) const BEGIN: &str = "-----BEGIN ";
const SSH2: &str = "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----";
const PUTTY: &str = "Private-Lines:";
/// Maximum length of a block title in bytes.
const NAME_BYTES: usize = 64;

/// Returns the block that begins at `at`. If the end marker is missing, the block extends over all lines that look like
/// part of a key.
pub(super) fn from_begin(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = &text[at..];
    if rest.starts_with(SSH2) {
        let end = rest.find("---- END SSH2").map(|end| end + rest[end..].find("KEY ----").map_or(13, |length| length + 8));
        return Some(at..at + end.unwrap_or_else(|| SSH2.len() + body(&rest[SSH2.len()..])));
    }
    let name = rest.strip_prefix(BEGIN)?;
    let name_end = name.bytes().take(NAME_BYTES).position(|byte| matches!(byte, b'-' | b'\n' | b'\r' | b'\\'))?;
    let title = name[..name_end].trim_end();
    if !is_private(title) {
        return None;
    }
    let head = BEGIN.len() + name_end + name[name_end..].bytes().take_while(|byte| *byte == b'-').count();
    let end = format!("-----END {title}");
    // The block ends before the next `-----BEGIN`, even if only a public key begins there.
    let until = rest[head..].find("-----BEGIN").map_or(rest.len(), |next| head + next);
    if let Some(found) = rest[head..until].find(&end) {
        let after = head + found + end.len();
        return Some(at..at + after + rest[after..].bytes().take(5).take_while(|byte| *byte == b'-').count());
    }
    if is_only_named(&rest[head..]) {
        return None;
    }
    Some(at..at + head + body(&rest[head..until]))
}

/// Returns whether the text merely mentions the beginning of a key: a quote closes directly after it, and the line
/// contains no further string.
fn is_only_named(after: &str) -> bool {
    let Some(rest) = after.strip_prefix(['"', '\'', '`']) else { return false };
    let rest = rest.split('\n').next().unwrap_or_default().trim();
    !rest.is_empty() && !rest.starts_with(['+', ',', '.', '"', '\'', '\\'])
}

fn is_private(title: &str) -> bool {
    title.ends_with("PRIVATE KEY") || title.ends_with("PRIVATE KEY BLOCK") || title == "SSH2 ENCRYPTED PRIVATE KEY"
}

/// Returns the lines of a key that precede an end marker without a matching beginning, which occurs if the text was cut
/// inside a block.
pub(super) fn to_end(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix("-----END ")?;
    let name_end = rest.bytes().take(NAME_BYTES).position(|byte| matches!(byte, b'-' | b'\n' | b'\r'))?;
    if !is_private(rest[..name_end].trim_end()) {
        return None;
    }
    let mut start = at;
    let before = text[..at].trim_end_matches('\n');
    let mut end = before.len();
    for (index, line) in before.rsplit('\n').enumerate() {
        // The last line of a key may be short.
        let last = index == 0 && !line.trim().is_empty() && line.trim().bytes().all(is_key_byte);
        if !last && !is_key_line(line) {
            break;
        }
        start = end - line.len();
        end = start.saturating_sub(1);
    }
    (start < at).then_some(start..at)
}

/// Returns the length of the end marker at the beginning of `text`, excluding any text after its dashes. Returns 0 if
/// there is no end marker.
pub(super) fn end_mark(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("-----END ") else { return 0 };
    let title = rest.bytes().take(NAME_BYTES).take_while(|byte| !matches!(byte, b'-' | b'\n' | b'\r')).count();
    text.len() - rest.len() + title + rest.bytes().skip(title).take(5).take_while(|byte| *byte == b'-').count()
}

/// Returns the length of the beginning of `text` that looks like the content of a key.
fn body(text: &str) -> usize {
    let mut length = 0;
    let mut kept = 0;
    for line in text.split_inclusive('\n') {
        // If the key is in a string on one line, its line breaks are escaped as two characters.
        let inside = line.find(['"', '\'', '`', ',', '<']).unwrap_or(line.len());
        let piece = line[..inside].trim_end();
        let empty = piece.trim().is_empty();
        if !empty && !is_key_line(piece) && !piece.replace("\\n", "").replace("\\r", "").bytes().all(is_key_byte) {
            break;
        }
        length += if inside < line.len() { inside } else { line.len() };
        if !empty {
            kept = length - (line[..inside].len() - piece.len());
        }
        if inside < line.len() {
            break;
        }
    }
    kept
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\\')
}

/// Returns whether a line is Base64 text or a header line of an old key format.
pub(super) fn is_key_line(line: &str) -> bool {
    // Search tools print the file and line before the text: `src/a.rs-12-…`. A key contains neither separator.
    let found = line.trim().rsplit([':', '-', '|', '\t']).next().unwrap_or_default().trim();
    if found.len() >= 40 && found.bytes().all(is_key_byte) {
        return true;
    }
    let line = line.trim();
    let header =
        ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Charset:", "Hash:"].iter().any(|name| line.starts_with(name));
    header
        || line.is_empty()
        || (line.bytes().all(is_key_byte) && (line.len() >= 40 || line.ends_with('=') || looks_encoded(line)))
}

/// Returns whether a short last line looks like Base64 rather than a word.
fn looks_encoded(line: &str) -> bool {
    line.bytes().any(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'/'))
        && line.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Returns the lines of a PuTTY key, whose number is given by `Private-Lines: N`.
pub(super) fn putty(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text[at..].strip_prefix(PUTTY)?;
    let line_end = rest.find('\n')?;
    let count: usize = rest[..line_end].trim().parse().ok()?;
    let start = at + PUTTY.len() + line_end + 1;
    let mut end = start;
    for line in text[start..].split_inclusive('\n').take(count.min(1000)) {
        let found = line.trim_end().rsplit([':', '-']).next().unwrap_or_default();
        if !found.bytes().all(is_key_byte) {
            break;
        }
        end += line.trim_end().len() + (line.len() - line.trim_end().len());
    }
    let end = start + text[start..end].trim_end().len();
    (start < end).then_some(start..end)
}

/// Returns `Some(true)` if a line opens a private key block, `Some(false)` if it closes one, and `None` otherwise. For
/// callers that read line by line.
pub fn opens_or_closes(line: &str) -> Option<bool> {
    let opens = |at: usize| {
        let name = &line[at + BEGIN.len()..];
        let title = name.split('-').next().unwrap_or_default().trim_end();
        let after = name[title.len()..].trim_start_matches([' ', '-']);
        is_private(title) && !is_only_named(after)
    };
    if line.contains(BEGIN) {
        let last = line.match_indices(BEGIN).map(|(at, _)| at).filter(|at| opens(*at)).last();
        return last.map(|at| !line[at..].contains("-----END "));
    }
    line.contains("-----END ").then_some(false)
}

/// Returns the end of a block that began before `text`.
pub(super) fn rest_of_block(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if opens_or_closes(line) == Some(false) {
            return at + line.trim_end().len();
        }
        if !is_key_line(line) && !line.trim().bytes().all(is_key_byte) {
            break;
        }
        at += line.len();
    }
    text[..at].trim_end().len()
}

/// Returns the ranges of lines that contain private keys (1-based).
pub(super) fn lines(text: &str) -> Vec<std::ops::RangeInclusive<u64>> {
    let mut found = Vec::new();
    let mut opened = None;
    let mut last = 0;
    for (number, line) in (1..).zip(text.lines()) {
        last = number;
        match (opens_or_closes(line), opened) {
            (Some(true), _) => opened = Some(number),
            (Some(false), Some(first)) => {
                found.push(first..=number);
                opened = None;
            }
            (Some(false) | None, _) => {}
        }
    }
    found.extend(opened.map(|first| first..=last));
    found
}
