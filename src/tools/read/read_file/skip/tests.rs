use super::*;
use encoding_rs::{SHIFT_JIS, UTF_8};
use proptest::prelude::*;

fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
    Units::Utf16 { big_endian }.bytes(text)
}

/// Reference implementation, which works line by line.
fn slow(text: &str, first: u64) -> (u64, bool, String) {
    let mut in_key = false;
    let mut rest = text;
    for line in 1..first {
        let Some(end) = rest.find('\n') else {
            return (line + u64::from(!rest.is_empty()), false, String::new());
        };
        in_key = opens_or_closes(&rest[..=end]).unwrap_or(in_key);
        rest = &rest[end + 1..];
    }
    (first, in_key, rest.to_owned())
}

fn fast(bytes: &[u8], encoding: &'static Encoding, first: u64) -> (u64, bool, String) {
    let mut from = bytes;
    let SkipPosition { line, mut rest, in_key } = skip_to(&mut from, encoding, first).unwrap();
    rest.extend_from_slice(from);
    (line, in_key, encoding.decode_without_bom_handling(&rest).0.into_owned())
}

#[test]
fn fast_line_skipping_equals_reading_line_by_line_in_any_encoding() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n";
    let long = "x".repeat(CHUNK_BYTES - 20);
    let escaped = format!("{{\"key\": \"-----BEGIN PRIVATE KEY-----{}\"}}\nnext\n", "A".repeat(CHUNK_BYTES * 2));
    let texts = [
        "",
        "one",
        "one\ntwo\nthree\n",
        "one\r\ntwo",
        &format!("a\n{key}b\n"),
        &format!("a\n{long}{key}b\nc"),
        &format!("------------------------\n{key}------BEGIN EC PRIVATE KEY------\nMII\n"),
        &format!("{key}{escaped}"),
        "ਊਊਊ\nⴀⴀⴀⴀⴀⴀ-----BEGIN PRIVATE KEY-----\nzwei\n",
    ];
    for text in texts {
        for first in 1..9 {
            let expected = slow(text, first);
            assert_eq!(fast(text.as_bytes(), UTF_8, first), expected, "{text:.80} {first}");
            assert_eq!(fast(&utf16(text, false), UTF_16LE, first), expected, "{text:.80} {first} LE");
            assert_eq!(fast(&utf16(text, true), UTF_16BE, first), expected, "{text:.80} {first} BE");
        }
    }
    assert_eq!(fast(b"\x93\xfa\n\x96\x7b", SHIFT_JIS, 2), (2, false, "本".to_owned()));
}

#[test]
fn key_markers_are_found_across_chunk_boundaries() {
    for shift in 0..AHEAD_BYTES + 64 {
        if shift % 97 > 12 {
            continue;
        }
        let text = format!("{}\n-----BEGIN PRIVATE KEY-----\nMII\nrest", "y".repeat(CHUNK_BYTES - AHEAD_BYTES - 40 + shift));
        assert!(fast(text.as_bytes(), UTF_8, 3).1, "{shift}");
        let closed = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\nx\n",
            "y".repeat(CHUNK_BYTES - AHEAD_BYTES - 70 + shift)
        );
        assert!(!fast(closed.as_bytes(), UTF_8, 4).1, "{shift}");
    }
}

proptest! {
    #[test]
    fn skipped_lines_give_the_same_key_state_as_read_lines(
        lines in proptest::collection::vec(prop_oneof![
            Just("-----BEGIN PRIVATE KEY-----"), Just("-----END PRIVATE KEY-----"), Just("-----BEGIN PUBLIC KEY-----"),
            Just("-----END PUBLIC KEY-----"), Just("text --- text"), Just("----------"), Just("é\r"), Just(""),
            Just("x = \"-----BEGIN PRIVATE KEY-----\" and more"), Just("-----BEGIN PRIVATE KEY----- A -----END PRIVATE KEY-----"),
        ], 0..12),
        joined in any::<bool>(),
        first in 1u64..14,
    ) {
        let text = lines.join(if joined { "\n" } else { "\n\n" });
        prop_assert_eq!(fast(text.as_bytes(), UTF_8, first), slow(&text, first));
        prop_assert_eq!(fast(&utf16(&text, false), UTF_16LE, first), slow(&text, first));
    }
}
