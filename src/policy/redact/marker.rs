//! Markers that replace redacted secrets: `[redacted:KIND:8 hex]`.

use crate::protocol::cut_position_after;
use std::ops::Range;

pub(super) const START: &str = "[redacted:";
const HASH: usize = 8;
/// Maximum length, in bytes, of the kind in a marker.
const KIND_BYTES: usize = 48;

pub(super) fn write(kind: &str, hash: &str) -> String {
    format!("{START}{kind}:{hash}]")
}

/// Returns the end of the complete marker that starts at `at`; `None` if there is none.
fn marker_end(text: &str, at: usize) -> Option<usize> {
    let rest = text[at..].strip_prefix(START)?;
    let kind = rest
        .bytes()
        .take(KIND_BYTES)
        .take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
        .count();
    let hash = rest[kind..].strip_prefix(':')?;
    let digits = hash.bytes().take(HASH).take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
    (kind > 0 && digits == HASH && hash[HASH..].starts_with(']')).then_some(at + START.len() + kind + 1 + HASH + 1)
}

/// Returns the ranges of all complete markers, in order of appearance.
pub(super) fn find_all(text: &str) -> Vec<Range<usize>> {
    text.match_indices(START).filter_map(|(at, _)| marker_end(text, at).map(|end| at..end)).collect()
}

/// A marker, or text that a model may have derived from a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MarkerMatch {
    Whole(Range<usize>),
    Mangled(Range<usize>),
}

/// Returns markers and text that resembles them, in order of appearance. Ignores `[redacted:{kind}` in program code and
/// `\[redacted:` in patterns.
pub(super) fn find_markers(text: &str) -> Vec<MarkerMatch> {
    const LOOKED_AT: usize = 80;
    let lower = text.to_ascii_lowercase();
    let mut pieces = Vec::new();
    for (at, _) in lower.match_indices("[redacted") {
        if let Some(end) = marker_end(text, at) {
            pieces.push(MarkerMatch::Whole(at..end));
            continue;
        }
        let Some(rest) = lower[at..].strip_prefix(START) else { continue };
        let first = rest.trim_start().chars().next();
        if first.is_some_and(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '…' | '.' | '*')) {
            // A marker that begins inside this text is a separate match.
            let stop = rest.bytes().take(LOOKED_AT).position(|byte| matches!(byte, b']' | b'\n' | b'['));
            let length = stop.map_or(0, |end| end + usize::from(rest.as_bytes()[end] != b'['));
            let end = cut_position_after(text, at + START.len() + length);
            pieces.push(MarkerMatch::Mangled(at..end));
        }
    }
    pieces
}
