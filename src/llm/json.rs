//! JSON helpers for writing requests and parsing responses.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Appends a comma, unless `out` is at the start of a list.
pub(super) fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'[' | b'{')) {
        out.push(b',');
    }
}

/// Appends `value` as JSON.
pub(super) fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // The writer is a vector, and the values are strings, numbers and maps with string keys, so this cannot fail.
    let _ = serde_json::to_writer(out, value);
}

/// Highest plausible token count. A larger count is a mistake and is lowered to this one, so sums cannot overflow.
const MAX_COUNT: u64 = 1 << 40;

/// Parses a count that is given as a number, possibly with a fraction, or as a string. Negative values become 0.
pub(super) fn parse_count(value: &Value) -> Option<u64> {
    let count = match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|count| count.round() as u64)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    count.map(|count| count.min(MAX_COUNT))
}

/// Returns the text of a JSON string, borrowed if it contains no escapes. Returns `None` for any other value.
pub(super) fn parse_text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let json = raw.get();
    if !json.starts_with('"') {
        return None;
    }
    match serde_json::from_str::<Text<'_>>(json) {
        Ok(text) => Some(text.0),
        // Half of a surrogate pair, from a server that splits text between UTF-16 units.
        Err(_) => serde_json::from_str::<Lossy>(json).ok().map(|text| Cow::Owned(text.0)),
    }
}

/// String that is copied only if it contains escapes. With `Option<Cow<str>>`, Serde would always copy it.
#[derive(serde::Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Lossy;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_in_every_form_and_clamped_to_a_maximum() {
        for (json, count) in [
            ("7", Some(7)),
            ("7.6", Some(8)),
            ("-3", Some(0)),
            ("-0.5", Some(0)),
            ("1e300", Some(MAX_COUNT)),
            ("18446744073709551615", Some(MAX_COUNT)),
            ("\"12\"", Some(12)),
            ("\"many\"", None),
            ("null", None),
            ("{}", None),
            ("true", None),
        ] {
            assert_eq!(parse_count(&serde_json::from_str(json).unwrap()), count, "{json}");
        }
    }

    #[test]
    fn only_json_strings_are_read_including_invalid_surrogates() {
        for (json, text) in [
            (r#""plain""#, Some("plain")),
            (r#""a\n\"b\" \u00e9 \ud83d\ude00""#, Some("a\n\"b\" é 😀")),
            (r#""half \ud83d""#, Some("half \u{fffd}\u{fffd}\u{fffd}")),
            ("1", None),
            ("null", None),
            (r#"["a"]"#, None),
        ] {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(parse_text(raw).as_deref(), text, "{json}");
        }
    }
}
