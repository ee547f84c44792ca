//! Replaces secrets with markers. A given secret always has the same marker, but the secret cannot be derived from the
//! marker without the key.

mod assignment;
mod block;
mod detect;
mod header;
mod key_names;
mod literals;
mod marker;
mod restore;
mod stream;
mod strip_ansi;
mod token_patterns;
mod value;

pub use block::opens_or_closes;
pub use key_names::is_secret as names_a_secret;
pub use restore::{Restorer, has_marker};
pub use stream::Stream;

use detect::Detectors;
use literals::LiteralSecrets;
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use strip_ansi::PlainText;

/// Kind of secret, and the number of secrets of this kind that were redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactionCount {
    pub kind: String,
    pub count: usize,
}

/// Text with its secrets redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    pub text: Cow<'a, str>,
    /// Kinds of redacted secrets, in order of first appearance.
    pub found: Vec<RedactionCount>,
}

/// A redaction rule from a bundle.
#[derive(Debug, Clone)]
pub struct RedactionRule {
    pub kind: String,
    pub expression: regex::Regex,
}

/// Key for the hashes in markers.
pub type Key = [u8; 32];

/// Maximum number of passes over a text. Several passes may be needed because replacing a secret can expose another one
/// next to it.
const PASSES: usize = 4;
/// Minimum length, in bytes, of text left over from a secret next to a marker. Shorter text is not redacted.
const REST_BYTES: usize = 4;

/// Finds secrets in text and redacts them.
pub struct Redactor {
    detectors: Detectors,
    key: OnceLock<Key>,
    make_key: Box<dyn Fn() -> Key + Send + Sync>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

/// Evidence that a text is a secret, ordered from weakest to strongest. If secrets overlap, the strongest evidence
/// determines the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    Known,
    Named,
    Shaped,
    Ruled,
    Block,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SecretSpan {
    start: usize,
    end: usize,
    kind: Cow<'static, str>,
    sureness: Evidence,
}

impl SecretSpan {
    fn named(start: usize, end: usize, kind: &'static str) -> Self {
        Self { start, end, kind: Cow::Borrowed(kind), sureness: Evidence::Named }
    }

    fn shaped(start: usize, end: usize, kind: &'static str) -> Self {
        Self { start, end, kind: Cow::Borrowed(kind), sureness: Evidence::Shaped }
    }

    fn block(start: usize, end: usize, kind: &'static str) -> Self {
        Self { start, end, kind: Cow::Borrowed(kind), sureness: Evidence::Block }
    }

    fn known(start: usize, end: usize) -> Self {
        Self { start, end, kind: Cow::Borrowed("known-value"), sureness: Evidence::Known }
    }

    fn ruled(start: usize, end: usize, kind: &str) -> Self {
        Self { start, end, kind: Cow::Owned(kind.to_owned()), sureness: Evidence::Ruled }
    }
}

impl Redactor {
    /// Creates a redactor. `known` contains values that are always secret. `key` is called once, when the first marker
    /// is created.
    pub fn new<'a>(
        rules: Vec<RedactionRule>,
        known: impl IntoIterator<Item = &'a str>,
        key: impl Fn() -> Key + Send + Sync + 'static,
    ) -> Self {
        Self { detectors: Detectors::new(rules, LiteralSecrets::new(known)), key: OnceLock::new(), make_key: Box::new(key) }
    }

    /// Returns the text with every secret replaced by a marker. Existing markers are left unchanged.
    pub fn redact<'a>(&self, text: &'a str) -> Redacted<'a> {
        let mut found = Vec::new();
        let text = self.replace(text, |kind, _, _| count(&mut found, kind));
        Redacted { text, found }
    }

    /// Returns whether the text contains a secret.
    pub fn holds_secret(&self, text: &str) -> bool {
        !self.spans(text).is_empty()
    }

    /// Returns the redacted text without counting the secrets.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replace(text, |_, _, _| ())
    }

    /// Redacts text that begins inside a private key, replacing the remainder of the key with a marker.
    pub fn hide_rest_of_key(&self, text: &str) -> String {
        let end = block::rest_of_block(text);
        if end == 0 {
            return text.to_owned();
        }
        self.marker("private-key", &text[..end]) + &text[end..]
    }

    /// Returns the text from `at` onwards. If a secret extends across `at`, its remainder is replaced with a marker.
    /// Later secrets are not redacted.
    pub fn redact_from(&self, text: &str, at: usize) -> String {
        let across = self.spans(text).into_iter().find(|span| span.start < at && at < span.end);
        let Some(SecretSpan { start, end, kind, .. }) = across else { return text[at..].to_owned() };
        self.marker(&kind, &text[start..end]) + &text[end..]
    }

    /// Returns the last position at or before `at` at which the text can be cut without splitting a secret.
    pub fn safe_cut_before(&self, text: &str, at: usize) -> usize {
        self.spans(text).into_iter().find(|span| span.start < at && at < span.end).map_or(at, |span| span.start)
    }

    /// Returns the ranges of lines that contain parts of a private key (1-based).
    pub fn lines_of_keys(text: &str) -> Vec<std::ops::RangeInclusive<u64>> {
        block::lines(text)
    }

    /// Replaces every secret, calling `each` with its kind, its marker and the secret itself.
    fn replace<'a>(&self, text: &'a str, mut each: impl FnMut(&str, &str, &str)) -> Cow<'a, str> {
        let mut now = Cow::Borrowed(text);
        for _ in 0..PASSES {
            let spans = self.spans(&now);
            if spans.is_empty() {
                break;
            }
            let mut next = String::with_capacity(now.len());
            let mut done = 0;
            for span in spans {
                let secret = &now[span.start..span.end];
                let marker = self.marker(&span.kind, secret);
                each(&span.kind, &marker, secret);
                next.push_str(&now[done..span.start]);
                next.push_str(&marker);
                done = span.end;
            }
            next.push_str(&now[done..]);
            now = Cow::Owned(next);
        }
        now
    }

    /// Returns the secrets in order, excluding markers and without overlaps.
    fn spans(&self, text: &str) -> Vec<SecretSpan> {
        let plain = PlainText::new(text);
        let mut spans = self.detectors.find(&plain.text);
        for span in &mut spans {
            let place = plain.original_range(span.start..span.end);
            (span.start, span.end) = (place.start, place.end);
        }
        merge_overlaps(spans, text)
    }

    fn marker(&self, kind: &str, secret: &str) -> String {
        let key = self.key.get_or_init(|| (self.make_key)());
        let hash = blake3::keyed_hash(key, secret.as_bytes()).to_hex();
        marker::write(kind, &hash[..8])
    }
}

fn count(found: &mut Vec<RedactionCount>, kind: &str) {
    match found.iter_mut().find(|found| found.kind == kind) {
        Some(found) => found.count += 1,
        None => found.push(RedactionCount { kind: kind.to_owned(), count: 1 }),
    }
}

/// Merges overlapping secrets and excludes markers. A merged secret has the kind with the strongest evidence.
fn merge_overlaps(mut spans: Vec<SecretSpan>, text: &str) -> Vec<SecretSpan> {
    if spans.is_empty() {
        return spans;
    }
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let mut merged: Vec<SecretSpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut().filter(|last| span.start < last.end) {
            Some(last) => {
                last.end = last.end.max(span.end);
                // Of two token patterns, the more specific one is found later: `sk-ant-` after `sk-`.
                let closer = span.sureness == Evidence::Shaped && span.start == last.start;
                if span.sureness > last.sureness || (closer && last.sureness == Evidence::Shaped) {
                    (last.kind, last.sureness) = (span.kind, span.sureness);
                }
            }
            None => merged.push(span),
        }
    }
    let markers = marker::find_all(text);
    if markers.is_empty() {
        return merged;
    }
    let mut kept = Vec::with_capacity(merged.len());
    for span in merged {
        let mut start = span.start;
        for marker in markers.iter().filter(|marker| marker.start < span.end && marker.end > span.start) {
            kept.push(SecretSpan { start, end: marker.start.max(start), ..span.clone() });
            start = marker.end;
        }
        kept.push(SecretSpan { start, ..span });
    }
    kept.retain(|span| {
        let touches = markers.iter().any(|marker| marker.end == span.start || marker.start == span.end);
        span.start < span.end && (!touches || has_content(&text[span.start..span.end]))
    });
    kept
}

fn has_content(rest: &str) -> bool {
    rest.len() >= REST_BYTES && rest.bytes().filter(u8::is_ascii_alphanumeric).count() >= REST_BYTES
}

#[cfg(test)]
mod tests;
