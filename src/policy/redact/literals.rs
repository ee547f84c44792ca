//! Finds secrets whose values aye knows, in every form in which they may appear.

use super::SecretSpan;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Minimum length of a secret in bytes. Shorter values may occur in text by chance.
const MIN_BYTES: usize = 8;
/// Minimum length, in bytes, of a line in a multi-line value that is treated as a secret of its own.
const LINE_BYTES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct LiteralSecrets {
    forms: Option<AhoCorasick>,
    has_spaces: bool,
}

impl LiteralSecrets {
    pub(super) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms = Vec::new();
        let mut has_spaces = false;
        for value in values.into_iter().map(str::trim) {
            let lines: Vec<&str> = value.lines().map(str::trim).collect();
            let parts =
                if lines.len() > 1 { lines.into_iter().filter(|line| line.len() >= LINE_BYTES).collect() } else { vec![value] };
            for part in parts.into_iter().filter(|part| part.len() >= MIN_BYTES) {
                has_spaces |= part.contains(char::is_whitespace);
                forms.extend(encoded_forms(part));
            }
        }
        forms.sort_unstable();
        forms.dedup();
        // A DFA would use several megabytes for a few keys.
        let kind = AhoCorasickKind::ContiguousNFA;
        let forms = (!forms.is_empty())
            .then(|| AhoCorasick::builder().kind(Some(kind)).match_kind(MatchKind::LeftmostLongest).build(&forms).ok())
            .flatten();
        Self { forms, has_spaces }
    }

    pub(super) fn find(&self, text: &str, spans: &mut Vec<SecretSpan>) {
        let Some(forms) = &self.forms else { return };
        for found in forms.find_iter(text) {
            let bytes = text.as_bytes();
            let padding = bytes[found.end()..].iter().take(2).take_while(|byte| **byte == b'=').count();
            spans.push(SecretSpan::known(found.start(), found.end() + padding));
        }
    }

    pub(super) fn has_spaces(&self) -> bool {
        self.has_spaces
    }
}

/// Returns the forms of a value: plain, Base64 at every offset, percent-encoded and hexadecimal.
fn encoded_forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    for before in 0..3 {
        let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(value.bytes()).collect();
        // Skip characters that also encode bits of the neighbouring bytes.
        let skip = (before * 8).div_ceil(6);
        let whole = bytes.len() * 8 / 6;
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let text = engine.encode(&bytes);
            if whole > skip + MIN_BYTES {
                forms.push(text[skip..whole].to_owned());
            }
            if before == 0 {
                forms.push(text);
            }
        }
    }
    let all_but = |keep: fn(u8) -> bool, upper: bool| -> String {
        value
            .bytes()
            .map(|byte| match (keep(byte), upper) {
                (true, _) => char::from(byte).to_string(),
                (false, true) => format!("%{byte:02X}"),
                (false, false) => format!("%{byte:02x}"),
            })
            .collect()
    };
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    let path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte);
    for keep in [unreserved as fn(u8) -> bool, plain, path, |_| false] {
        forms.push(all_but(keep, true));
        forms.push(all_but(keep, false));
    }
    forms.push(all_but(unreserved, true).replace("%20", "+"));
    // The value as escaped in JSON.
    forms.push(value.replace('\\', "\\\\").replace('"', "\\\""));
    let digits = |byte: u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(u32::from(digit), 16).unwrap_or_default());
    let hex: String = value.bytes().flat_map(digits).collect();
    forms.push(hex.to_uppercase());
    forms.push(hex);
    forms
}
