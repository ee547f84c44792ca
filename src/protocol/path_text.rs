//! Serializes paths as text without loss, including paths that are not valid UTF-8.
//!
//! Valid UTF-8 is written unchanged. Each byte that is not part of valid UTF-8 is written as a NUL character followed by
//! the byte's two lower-case hexadecimal digits, so the name `x\xe9` is the JSON string `"x\u0000e9"`. No path
//! contains a NUL character, so no valid path is confused with an escaped one.

use serde::{Deserialize, Deserializer, Serializer};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

const ESCAPE: u8 = 0;

pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(path))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    String::deserialize(deserializer).map(|text| decode(&text))
}

/// Serializes a list of paths in the same form.
pub mod list {
    use super::{decode, encode};
    use serde::{Deserialize, Deserializer, Serializer};
    use std::path::PathBuf;

    pub fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| encode(path)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.iter().map(|text| decode(text)).collect())
    }
}

fn encode(path: &Path) -> Cow<'_, str> {
    if let Some(text) = path.to_str().filter(|text| !text.as_bytes().contains(&ESCAPE)) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            text.push(character);
            // A path from a program may contain the character by mistake. It is escaped, so decoding restores it.
            if character == char::from(ESCAPE) {
                text.push_str("00");
            }
        }
        for byte in chunk.invalid() {
            text.push(char::from(ESCAPE));
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
    }
    Cow::Owned(text)
}

/// Decodes a path. An escape character that does not start an escape is part of the path.
fn decode(text: &str) -> PathBuf {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let [first, after @ ..] = rest {
        let escaped = (*first == ESCAPE).then(|| after.get(..2).and_then(hex_byte)).flatten();
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns the byte that two lower-case hexadecimal digits represent. Only bytes that are written in this form count, so
/// that text from elsewhere cannot hide a separator or a dot in an escape.
fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    match digits {
        [high, low] => Some(digit(*high)? * 16 + digit(*low)?).filter(|byte| *byte == ESCAPE || !byte.is_ascii()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Place, Target};
    use proptest::prelude::*;
    use serde::Serialize;
    use std::ffi::OsStr;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Paths {
        #[serde(with = "crate::protocol::path_text")]
        one: PathBuf,
        #[serde(with = "crate::protocol::path_text::list")]
        several: Vec<PathBuf>,
    }

    fn path(bytes: &[u8]) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(bytes))
    }

    proptest! {
        #[test]
        fn every_path_is_restored_and_valid_utf_8_is_written_unchanged(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'0'), Just(b'e'), Just(0xc3), Just(0xa9), 1_u8..=255],
                0..40,
            ),
        ) {
            let paths = Paths { one: path(&bytes), several: vec![path(&bytes), path(b"/plain")] };
            let json = serde_json::to_string(&paths).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Paths>(&json).unwrap(), &paths);
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let value = serde_json::to_value(&paths).unwrap();
                prop_assert_eq!(&value["one"], text);
            }
        }
    }

    #[test]
    fn invalid_bytes_are_written_as_a_nul_character_and_two_digits() {
        assert_eq!(encode(&path(b"caf\xe9.txt")), "caf\0e9.txt");
        assert_eq!(encode(&path("café\\u0000e9".as_bytes())), "café\\u0000e9");
        for kept in ["a\x00", "a\x00x9", "a\x00E9", "a\x00é", "a\x002f\x002e\x002e"] {
            assert_eq!(decode(kept), path(kept.as_bytes()), "{kept:?}");
        }
    }

    #[test]
    fn targets_with_invalid_utf_8_are_restored() {
        let target = Target { given: "caf*".to_owned(), real: path(b"/w/caf\xe9.txt"), place: Place::Missing };
        let json = serde_json::to_string(&target).unwrap();
        assert_eq!(serde_json::from_str::<Target>(&json).unwrap(), target);
        let old = r#"{"given":"a","real":"/w/café.txt","place":"missing"}"#;
        let target = serde_json::from_str::<Target>(old).unwrap();
        assert_eq!((target.real.as_path(), serde_json::to_string(&target).unwrap()), (Path::new("/w/café.txt"), old.to_owned()));
    }
}
