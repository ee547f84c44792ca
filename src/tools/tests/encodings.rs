//! Tests that `Grep` agrees with `ReadFile`: it finds every word that `ReadFile` shows, whatever the encoding and the
//! position of the first non-ASCII character.

use super::*;
use encoding_rs::WINDOWS_1252;
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Kept {
    Utf8,
    Utf8Bom,
    Latin1,
    Utf16Le,
    Utf16Be,
}

const ALL: [Kept; 5] = [Kept::Utf8, Kept::Utf8Bom, Kept::Latin1, Kept::Utf16Le, Kept::Utf16Be];

fn bytes(kept: Kept, text: &str) -> Vec<u8> {
    match kept {
        Kept::Utf8 => text.as_bytes().to_vec(),
        Kept::Utf8Bom => [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
        Kept::Latin1 => WINDOWS_1252.encode(text).0.into_owned(),
        Kept::Utf16Le => [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect(),
        Kept::Utf16Be => [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect(),
    }
}

/// Number of bytes that precede the first non-ASCII line. The values are close to the limits for detection, for whole
/// files, and for reading in chunks.
const BEFORE: [usize; 5] = [0, 7_000, 70_000, 1_100_000, 2_000_000];

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn grep_finds_words_shown_by_read_file_in_every_encoding(
        kept in prop::sample::select(&ALL[..]),
        before in prop::sample::select(&BEFORE[..]),
        word in "[a-zà-öø-ÿ“”€]{1,6}",
        around in "[a-zé «»]{0,8}",
        pattern in prop::sample::select(&["word", "literal", "dots", "end"][..]),
        multiline in any::<bool>(),
    ) {
        prop_assume!(!word.is_ascii());
        let bench = Bench::new();
        let plain = "plain text of a line\n".repeat(before / 21);
        let line = format!("{around}<{word}>{around}");
        bench.write("f.txt", bytes(kept, &format!("{plain}{line}\nlast é\n")));
        bench.write("other.txt", "nothing of it\n");
        let number = before / 21 + 1;
        let read = bench.output("ReadFile", json!({"path": "f.txt", "offset": number, "limit": 1}));
        prop_assert!(read.starts_with(&format!("{line}\n")), "{read}");
        let search = |more: Value| {
            let expression = match pattern {
                "dots" => format!("<{}>", ".".repeat(word.chars().count())),
                "end" => format!("{word}>{around}$"),
                _ => format!("<{word}>"),
            };
            let mut arguments = json!({"pattern": expression, "literal": pattern == "literal", "multiline": multiline});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            bench.output("Grep", arguments)
        };
        prop_assert_eq!(search(json!({})), format!("f.txt:{number}:{line}"));
        prop_assert_eq!(search(json!({"path": "f.txt"})), format!("f.txt:{number}:{line}"));
        prop_assert_eq!(search(json!({"output": "files"})), "f.txt");
        prop_assert_eq!(search(json!({"output": "count"})), "f.txt:1");
        prop_assert_eq!(search(json!({"output": "filesWithoutMatch"})), "other.txt");
        let after = search(json!({"after": 1}));
        prop_assert_eq!(after, format!("f.txt:{number}:{line}\nf.txt-{}-last é", number + 1));
    }
}

#[test]
fn secrets_are_redacted_in_every_encoding() {
    let bench = Bench::new();
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", "MIIEabcdefghij0123".repeat(3));
    for kept in ALL {
        for before in [0, 1_100_000] {
            bench.write("f.txt", bytes(kept, &format!("{}é\n{key}\u{e9} after\n", "plain\n".repeat(before / 6))));
            for output in ["content", "count", "files"] {
                let found = bench.output("Grep", json!({"pattern": "MIIE|abcdef", "output": output}));
                assert!(found.starts_with("no line matches"), "{kept:?} {before} {output}: {found}");
            }
            let found = bench.output("Grep", json!({"pattern": "é after"}));
            assert!(found.ends_with(":é after"), "{kept:?} {before}: {found}");
        }
    }
}
