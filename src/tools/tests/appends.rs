//! Tests of `AppendFile`, and of `write_file` with `append`.

use super::*;
use crate::tools::document::content::Form;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Creates two benches that contain the same file, which fits into memory only in the first one.
fn both(content: &[u8]) -> [Bench; 2] {
    [10 * 1024 * 1024, 1].map(|limit| {
        let mut bench = Bench::new();
        bench.settings.max_file_size_bytes = limit;
        bench.write("f", content);
        bench
    })
}

#[test]
fn text_is_appended_in_the_format_of_the_file() {
    let latin = b"caf\xE9\r\n".as_slice();
    let cases: [(Vec<u8>, &str, Vec<u8>); 13] = [
        (b"a\nb\n".to_vec(), "c\n", b"a\nb\nc\n".to_vec()),
        (b"a\r\nb\r\n".to_vec(), "c\nd\n", b"a\r\nb\r\nc\r\nd\r\n".to_vec()),
        (b"a\r\nb\r\n".to_vec(), "c\r\nd\n", b"a\r\nb\r\nc\r\nd\n".to_vec()),
        (b"a\r\nb\r\n".to_vec(), "c\rd\n", b"a\r\nb\r\nc\rd\r\n".to_vec()),
        (b"a\r\nb\n".to_vec(), "c\n", b"a\r\nb\nc\n".to_vec()),
        (b"a\nb".to_vec(), "c", b"a\nbc".to_vec()),
        (b"a\nb".to_vec(), "\nc\n", b"a\nb\nc\n".to_vec()),
        (b"a\r\nb".to_vec(), "\n", b"a\r\nb\r\n".to_vec()),
        ("\u{feff}a\n".into(), "\u{feff}é\n", "\u{feff}a\né\n".into()),
        (latin.to_vec(), "é\n", [latin, b"\xE9\r\n"].concat()),
        (Form::Utf16Le.encode("a\r\nb").unwrap(), "é😀\n", Form::Utf16Le.encode("a\r\nbé😀\r\n").unwrap()),
        (Form::Utf16Be.encode("a\n").unwrap(), "b", Form::Utf16Be.encode("a\nb").unwrap()),
        ("ü\n".repeat(5000).into(), "ö", format!("{}ö", "ü\n".repeat(5000)).into()),
    ];
    for (before, content, after) in cases {
        for bench in both(&before) {
            fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(0o640)).unwrap();
            bench.output("AppendFile", json!({"path": "f", "content": content}));
            assert_eq!(bench.read("f"), after, "{before:?} {content:?}");
            assert_eq!(fs::metadata(bench.path("f")).unwrap().mode() & 0o777, 0o640);
        }
    }
}

#[test]
fn one_invalid_byte_anywhere_makes_a_file_latin_1() {
    for at in [8 * 1024 - 1, 8 * 1024, 256 * 1024 - 1, 256 * 1024, 300_000] {
        let mut content = vec![b'a'; at];
        content.extend("\u{e9}\u{20ac}x".bytes());
        content.resize(400_000, b'a');
        for bench in both(&content) {
            bench.output("append", json!({"path": "f", "content": "é"}));
            assert_eq!(bench.read("f"), [content.as_slice(), "é".as_bytes()].concat(), "{at}");
        }
        content[at] = 0xE9;
        content[at + 1] = b'b';
        for bench in both(&content) {
            bench.output("append", json!({"path": "f", "content": "é"}));
            assert_eq!(bench.read("f"), [content.as_slice(), b"\xE9"].concat(), "{at}");
        }
    }
}

#[test]
fn a_missing_final_newline_is_reported_and_not_added() {
    for bench in both(b"one\ntwo") {
        let told = bench.output("append_file", json!({"path": "f", "content": "three"}));
        assert!(told.contains("the file had no trailing newline, so the text continues its last line"), "{told}");
        assert!(told.contains("now has no trailing newline"), "{told}");
        assert_eq!(bench.read("f"), b"one\ntwothree");
    }
    for bench in both(b"one\n") {
        let told = bench.output("append_file", json!({"path": "f", "content": "two\n"}));
        assert_eq!(told, "Appended 4 bytes to f");
    }
}

#[test]
fn binary_files_and_files_that_cannot_encode_the_text_are_unchanged() {
    let cases: [(&[u8], &str, &str); 4] = [
        (b"\x7fELF\0\0\0", "x", "binary"),
        (b"\xFF\xFEa\0b", "x", "not valid in its own encoding"),
        (b"caf\xE9\n", "\u{4e2d}", "latin-1, which lacks a character"),
        (b"\xEF\xBB\xBFa\xE9\n", "x", "not valid in its own encoding"),
    ];
    for (before, content, part) in cases {
        for bench in both(before) {
            let (_, message) = bench.error("AppendFile", json!({"path": "f", "content": content}));
            assert!(message.contains(part), "{message}");
            assert_eq!(bench.read("f"), before);
        }
    }
}

#[test]
fn append_proposals_show_only_the_end_of_the_file() {
    let lines: String = (1..=500).flat_map(|number| ["line ".to_owned(), number.to_string(), "\n".to_owned()]).collect();
    let [small, large] = both(lines.as_bytes());
    let arguments = json!({"path": "f", "content": "new\nmore\n"});
    let proposal = small.plan("AppendFile", arguments.clone()).unwrap().proposal.unwrap();
    assert!(
        proposal.diff.to_string().contains("@@ -498,3 +498,5 @@\n line 498\n line 499\n line 500\n+new\n+more\n"),
        "{}",
        proposal.diff
    );
    assert_eq!((proposal.summary.as_str(), proposal.bytes), ("Append to f +2 −0", 9));
    let proposal = large.plan("AppendFile", arguments).unwrap().proposal.unwrap();
    assert!(proposal.diff.to_string().ends_with("@@ -500,0 +501,2 @@\n+new\n+more\n"), "{}", proposal.diff);
}

#[test]
fn a_file_changed_since_the_plan_is_not_appended_to() {
    for bench in both(b"one\n") {
        let plan = bench.plan("AppendFile", json!({"path": "f", "content": "two\n"})).unwrap();
        bench.write("f", "other\n");
        let error = bench.run(plan).error.unwrap();
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
        assert_eq!(bench.read("f"), b"other\n");
    }
}

#[test]
fn a_missing_file_is_created_with_its_directories() {
    let bench = Bench::new();
    bench.output("AppendFile", json!({"path": "a/b/c", "content": "x\n"}));
    assert_eq!(bench.read("a/b/c"), b"x\n");
    let (code, _) = bench.error("AppendFile", json!({"path": "q/r", "content": "x", "createDirectories": false}));
    assert_eq!(code, ErrorCode::FileNotFound);
}

#[test]
fn write_file_appends_on_request() {
    let bench = Bench::new();
    bench.output("write_file", json!({"path": "d/f", "content": "one\n"}));
    bench.output("write_file", json!({"path": "d/f", "content": "two\n", "append": true}));
    assert_eq!(bench.read("d/f"), b"one\ntwo\n");
    bench.output("write_file", json!({"path": "d/f", "content": "three\n", "append": false}));
    assert_eq!(bench.read("d/f"), b"three\n");
    bench.output("TextCreate", json!({"filePath": "d/f", "content": "four\n"}));
    assert_eq!(bench.read("d/f"), b"four\n");
    let (_, message) = bench.error("WriteFile", json!({"path": "d/f", "content": "x", "append": true}));
    assert!(message.contains("`append` is not an argument"), "{message}");
}

#[test]
fn markers_are_restored_in_small_files_and_rejected_in_large_ones() {
    const TOKEN: &str = "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";
    let [small, large] = both(format!("token = {TOKEN}\n").as_bytes());
    let shown = small.output("ReadFile", json!({"path": "f"}));
    small.output("AppendFile", json!({"path": "f", "content": shown}));
    assert_eq!(small.read("f"), format!("token = {TOKEN}\ntoken = {TOKEN}\n").as_bytes());
    let (_, message) = large.error("AppendFile", json!({"path": "f", "content": shown}));
    assert!(message.contains("too large to restore it"), "{message}");
}
