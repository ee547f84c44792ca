//! Packed records: many finished records in one compressed row, with repeated strings stored only once.
//!
//! A row consists of a format number and a zlib stream, whose checksum detects damage. Each record is preceded by its
//! time and length. A string that has occurred earlier in the row is replaced with a *copy*: the byte 1, which never
//! occurs in JSON, followed by the distance and the length. Unpacking restores the original bytes exactly.

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::collections::HashMap;
use std::io::{Read, Write};

/// Format number, stored in the first byte of a packed row.
const FORMAT: u8 = 1;
/// Byte that introduces a copy of an earlier string.
const COPY: u8 = 1;
/// Minimum length in bytes of a string to be replaced with a copy. Compressing shorter strings is left to zlib.
const MIN_COPIED_BYTES: usize = 256;
/// Maximum unpacked size of a row in bytes. A row that claims to be larger is damaged.
const MAX_BYTES: usize = 256 << 20;

/// Stored record and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredRecord {
    pub time: i64,
    pub json: Vec<u8>,
}

pub(super) fn pack(records: &[StoredRecord]) -> std::io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(vec![FORMAT], Compression::default());
    let mut known = HashMap::new();
    let (mut at, mut before) = (0, 0);
    let (mut head, mut body) = (Vec::new(), Vec::new());
    for record in records {
        head.clear();
        body.clear();
        let plain = !record.json.contains(&COPY);
        if plain {
            copy_known_strings(&record.json, at, &mut known, &mut body);
        }
        number(zigzag(record.time.wrapping_sub(before)), &mut head);
        let stored = if plain { &body } else { &record.json };
        number((stored.len() as u64) << 1 | u64::from(plain), &mut head);
        encoder.write_all(&head)?;
        encoder.write_all(stored)?;
        at += record.json.len();
        before = record.time;
    }
    encoder.finish()
}

/// Writes a record, replacing long strings that occurred earlier with copies. `at` is the record's offset in the
/// concatenated data of all packed records.
fn copy_known_strings<'a>(json: &'a [u8], at: usize, known: &mut HashMap<&'a [u8], usize>, out: &mut Vec<u8>) {
    let mut written = 0;
    for (start, end) in strings(json) {
        let text = &json[start..end];
        if text.len() < MIN_COPIED_BYTES {
            continue;
        }
        if let Some(place) = known.get(text) {
            out.extend_from_slice(&json[written..start]);
            out.push(COPY);
            number((at + start - place) as u64, out);
            number(text.len() as u64, out);
            written = end;
        } else {
            known.insert(text, at + start);
        }
    }
    out.extend_from_slice(&json[written..]);
}

/// Returns the byte ranges of the strings in a JSON text, without their quotes.
fn strings(json: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + memchr::memchr(b'"', &json[at..])? + 1;
        let mut end = start;
        loop {
            end += memchr::memchr2(b'"', b'\\', &json[end..])?;
            if json[end] == b'"' {
                break;
            }
            end += 2;
            if end > json.len() {
                return None;
            }
        }
        at = end + 1;
        Some((start, end))
    })
}

/// Unpacks as much of a row as can be read. The flag is `false` if part of the row is unreadable.
pub(super) fn unpack(row: &[u8]) -> (Vec<StoredRecord>, bool) {
    let mut records = Vec::new();
    let Some((&FORMAT, packed)) = row.split_first() else { return (records, false) };
    let mut bytes = Vec::new();
    let whole = ZlibDecoder::new(packed).take(MAX_BYTES as u64).read_to_end(&mut bytes).is_ok();
    let mut all = Vec::new();
    let (mut rest, mut time) = (&bytes[..], 0i64);
    while !rest.is_empty() {
        let start = all.len();
        let Some(passed) = next(&mut rest, &mut all) else {
            return (records, false);
        };
        time = time.wrapping_add(passed);
        records.push(StoredRecord { time, json: all[start..].to_vec() });
    }
    (records, whole)
}

/// Unpacks the next record and appends it to `all`. Returns the time that elapsed since the previous record, or `None`
/// if the record is unreadable.
fn next(rest: &mut &[u8], all: &mut Vec<u8>) -> Option<i64> {
    let passed = unzigzag(take_number(rest)?);
    let length = take_number(rest)?;
    let (mut stored, after) = rest.split_at_checked(usize::try_from(length >> 1).ok()?)?;
    *rest = after;
    if length & 1 == 0 {
        all.extend_from_slice(stored);
        return Some(passed);
    }
    while let Some(copy) = memchr::memchr(COPY, stored) {
        all.extend_from_slice(&stored[..copy]);
        stored = &stored[copy + 1..];
        let back = usize::try_from(take_number(&mut stored)?).ok()?;
        let length = usize::try_from(take_number(&mut stored)?).ok()?;
        let from = all.len().checked_sub(back)?;
        let to = from.checked_add(length).filter(|to| *to <= all.len() && all.len() + length <= MAX_BYTES)?;
        all.extend_from_within(from..to);
    }
    all.extend_from_slice(stored);
    Some(passed)
}

fn number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(time: i64, json: &str) -> StoredRecord {
        StoredRecord { time, json: json.as_bytes().to_vec() }
    }

    #[test]
    fn repeated_text_is_packed_once_at_any_distance() {
        let noise: String =
            (0..60_000u64).map(|n| char::from(b'!' + 2 + ((n.wrapping_mul(n) * 2_654_435_761) >> 7) as u8 % 50)).collect();
        let once = format!(r#"{{"a":"{noise}"}}"#);
        let twice = [stored(5, &once), stored(6, r#"{"b":1}"#), stored(4, &format!(r#"{{"c":["x\"y","{noise}"]}}"#))];
        let packed = pack(&twice).unwrap();
        assert_eq!(unpack(&packed), (twice.to_vec(), true));
        let alone = pack(&twice[..1]).unwrap();
        assert!(packed.len() < alone.len() + 200, "{} and {}", packed.len(), alone.len());
    }

    #[test]
    fn records_that_are_not_json_round_trip() {
        let odd = [b"\x01\x02\xff".to_vec(), b"\"open \\".to_vec(), Vec::new(), b"\"\\".to_vec()];
        let records: Vec<_> = odd.into_iter().map(|json| StoredRecord { time: i64::MIN, json }).collect();
        assert_eq!(unpack(&pack(&records).unwrap()), (records, true));
    }

    #[test]
    fn the_start_of_a_truncated_row_is_readable() {
        let records: Vec<_> =
            (0..400).map(|n: u64| stored(n as i64, &format!(r#"{{"n":"{}"}}"#, n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))).collect();
        let packed = pack(&records).unwrap();
        let (read, whole) = unpack(&packed[..packed.len() / 2]);
        assert!(!whole && read.len() > 50 && records.starts_with(&read), "{}", read.len());
    }

    proptest! {
        #[test]
        fn packed_records_round_trip(texts in prop::collection::vec((any::<i64>(), "[a-c\\\\\"]{0,3}", 0..3usize, "\\PC{0,40}"), 0..8)) {
            let records: Vec<_> = texts.into_iter().map(|(time, odd, times, text)| {
                let long = serde_json::to_string(&text.repeat(times * 40)).unwrap();
                stored(time, &format!("[{long},{long}]{odd}"))
            }).collect();
            prop_assert_eq!(unpack(&pack(&records).unwrap()), (records, true));
        }

        #[test]
        fn damaged_rows_do_not_panic(at in any::<prop::sample::Index>(), byte: u8) {
            let text = "what was said ".repeat(60);
            let records: Vec<_> = (0..20).map(|n| stored(n, &format!(r#"{{"n":{n},"text":"{text}{}"}}"#, n % 3))).collect();
            let mut packed = pack(&records).unwrap();
            let at = at.index(packed.len());
            packed[at] = byte;
            let (read, whole) = unpack(&packed);
            prop_assert!(!whole || read == records);
        }
    }
}
