use super::*;
use crate::tools::document::content::{Document, Form};
use crate::tools::document::replacement::{Occurrences, replace_ranges, with_lf};
use crate::tools::write::matching::find;
use proptest::prelude::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const FORMS: [Form; 5] = [Form::Utf8, Form::Utf8Bom, Form::Utf16Le, Form::Utf16Be, Form::Latin1];

/// Generates lines, each with its own ending. The last line may have none.
fn lines() -> impl Strategy<Value = Vec<(String, &'static str)>> {
    let ending = prop_oneof![Just("\n"), Just("\r\n")];
    (proptest::collection::vec(("[a-z éÿ\t\r]{0,8}", ending), 1..12), any::<bool>()).prop_map(|(mut lines, ended)| {
        // A CR before an LF would be a CRLF.
        for (body, _) in &mut lines {
            *body = body.trim_end_matches('\r').to_owned();
        }
        if !ended && let Some(last) = lines.last_mut() {
            last.1 = "";
        }
        lines
    })
}

fn joined(lines: &[(String, &'static str)]) -> String {
    lines.iter().flat_map(|(body, ending)| [body.as_str(), ending]).collect()
}

/// Replaces text as an edit would.
fn replaced(text: &str, old: &str, new: &str) -> Option<String> {
    let found = find(&with_lf(text), old, new, Occurrences::TheOnly, &[]).ok()?;
    Some(replace_ranges(text, found.places.iter().map(|place| (place.range.clone(), place.new.as_str()))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn edits_leave_all_other_bytes_unchanged(
        mut lines in lines(),
        at in any::<prop::sample::Index>(),
        form in prop::sample::select(&FORMS[..]),
        mode in prop::sample::select(&[0o644u32, 0o600, 0o755, 0o664][..]),
        new in "[a-zé]{0,6}(\n[a-z]{1,4}){0,3}",
    ) {
        let at = at.index(lines.len());
        lines[at].0 = format!("{}@MARK@{}", lines[at].0, "z");
        let text = joined(&lines);
        // Only bytes that are not UTF-8 make a file Latin-1.
        prop_assume!(form != Form::Latin1 || text.contains(['é', 'ÿ']));
        let before = form.encode(&text).unwrap();
        let bench = Bench::new();
        bench.write("f", &before);
        fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(mode)).unwrap();
        bench.output("EditFile", json!({"path": "f", "edits": [{"oldText": "@MARK@", "newText": new}]}));

        let (head, tail) = text.split_once("@MARK@").unwrap();
        let head = form.encode(head).unwrap();
        let tail_bytes = form.encode(tail).unwrap();
        // Without the BOM, which is only at the start.
        let tail = &tail_bytes[form.encode("").unwrap().len()..];
        let after = bench.read("f");
        prop_assert!(after.starts_with(&head));
        prop_assert!(after.ends_with(tail));
        let put_in = &after[head.len()..after.len() - tail.len()];
        let bom = form.encode("").unwrap();
        let put_in = form.encoding().decode_without_bom_handling(put_in).0.into_owned();
        prop_assert_eq!(put_in.replace("\r\n", "\n"), new);
        prop_assert!(after.starts_with(&bom));
        prop_assert_eq!(fs::metadata(bench.path("f")).unwrap().mode() & 0o7777, mode);
    }

    #[test]
    fn lines_around_a_change_keep_their_endings(lines in lines(), at in any::<prop::sample::Index>()) {
        // The whole text is context, and one line changes.
        let at = at.index(lines.len());
        let old = joined(&lines);
        prop_assume!(!old.is_empty());
        let mut expected = lines.clone();
        expected[at].0 = "@NEW@".to_owned();
        let new = joined(&expected).replace("\r\n", "\n");
        prop_assume!(old.replace("\r\n", "\n") != new);
        let result = replaced(&old, &old.replace("\r\n", "\n"), &new).unwrap();
        prop_assert_eq!(result.replace("\r\n", "\n"), new);
        for (index, (line, (_, ending))) in result.split_inclusive('\n').zip(&lines).enumerate() {
            if index != at && !ending.is_empty() {
                prop_assert_eq!(line.ends_with("\r\n"), *ending == "\r\n", "line {}", index);
            }
        }
    }

    #[test]
    fn decoding_and_encoding_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..64), bom in 0usize..4) {
        let start: &[u8] = [&b""[..], b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xFE\xFF"][bom];
        let bytes = [start, &bytes].concat();
        if let Ok(document) = Document::decode(&bytes) {
            prop_assert_eq!(document.form.encode(&document.text).unwrap(), bytes);
        }
    }
}

#[test]
fn new_lines_get_the_endings_of_surrounding_lines() {
    let cases = [
        ("a\r\nb\r\nc\n", "b", "x\ny", "a\r\nx\r\ny\r\nc\n"),
        ("a\nb\nc\r\n", "b", "x\ny", "a\nx\ny\nc\r\n"),
        ("a\r\nb\nc\n", "a\nb\nc", "a\nB\nnew\nc", "a\r\nB\nnew\nc\n"),
        ("a\r\nb\r\n", "a\nb\n", "a\n", "a\r\n"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("ab", "b", "\n", "a\n"),
        ("a\r\nb\r\n", "\n", "", "error"),
        ("a\r\nb", "a\n", "", "b"),
        ("a\rb\r\nc", "a\rb\nc", "x\nc", "x\r\nc"),
    ];
    for (text, old, new, expected) in cases {
        let result = replaced(text, old, new).unwrap_or_else(|| "error".to_owned());
        assert_eq!(result, expected, "{text:?} {old:?} {new:?}");
    }
}

/// Generates texts that contain every construct that might confuse an edit.
fn odd_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z =(){};\"']{1,8}",
        3 => Just("\n".to_owned()),
        2 => Just("\r\n".to_owned()),
        1 => Just("\r".to_owned()),
        1 => prop::sample::select(&["\u{c}", "\u{b}", "\u{2028}", "\u{85}", "\u{a0}", "é", "e\u{301}", "ÿ", "\t", "  \n", "\u{7f}"][..])
            .prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_edit_and_its_reverse_restore_the_same_bytes(
        head in odd_text(),
        tail in odd_text(),
        form in prop::sample::select(&FORMS[..]),
        mode in prop::sample::select(&[0o600u32, 0o755, 0o640][..]),
        link in any::<bool>(),
    ) {
        let text = format!("{head}@MARK@{tail}");
        let bytes = form.encode(&text);
        prop_assume!(bytes.is_some() && (form != Form::Latin1 || text.contains(['é', 'ÿ'])));
        let bytes = bytes.unwrap();
        // A few invalid UTF-8 bytes with control characters among them are treated as binary.
        prop_assume!(Document::decode(&bytes).is_ok());
        let bench = Bench::new();
        bench.write("real", &bytes);
        fs::set_permissions(bench.path("real"), fs::Permissions::from_mode(mode)).unwrap();
        let path = if link { "link" } else { "real" };
        std::os::unix::fs::symlink("real", bench.path("link")).unwrap();
        bench.output("EditFile", json!({"path": path, "oldText": "@MARK@", "newText": "@other one@"}));
        prop_assert_eq!(bench.read("real"), form.encode(&format!("{head}@other one@{tail}")).unwrap());
        bench.output("EditFile", json!({"path": path, "oldText": "@other one@", "newText": "@MARK@"}));
        prop_assert_eq!(bench.read("real"), bytes);
        prop_assert_eq!(fs::metadata(bench.path("real")).unwrap().mode() & 0o7777, mode);
        prop_assert!(bench.path("link").is_symlink());
    }

    #[test]
    fn writing_back_read_content_restores_the_same_bytes(text in odd_text(), form in prop::sample::select(&FORMS[..])) {
        let bytes = form.encode(&text);
        prop_assume!(bytes.is_some() && !text.is_empty() && (form != Form::Latin1 || text.contains(['é', 'ÿ'])));
        let bytes = bytes.unwrap();
        prop_assume!(Document::decode(&bytes).is_ok());
        let bench = Bench::new();
        bench.write("f", &bytes);
        let shown = bench.output("ReadFile", json!({"path": "f"}));
        bench.output("WriteFile", json!({"path": "f", "content": shown}));
        prop_assert_eq!(bench.read("f"), bytes);
    }
}

#[test]
fn files_that_cannot_be_preserved_byte_for_byte_are_rejected() {
    let cases: [(&[u8], &str); 5] = [
        (b"a\0b\0\n\0", "binary"),
        (b"text\0more", "binary"),
        (b"\xFF\xFEa\0\x00\xD8b\0", "not valid in its own encoding"),
        (b"\xEF\xBB\xBFa\xFFb", "not valid in its own encoding"),
        (b"\xFE\xFF\0a\0", "not valid in its own encoding"),
    ];
    for (bytes, why) in cases {
        let bench = Bench::new();
        bench.write("f", bytes);
        let (_, message) = bench.error("EditFile", json!({"path": "f", "oldText": "a", "newText": "x"}));
        assert!(message.contains(why), "{bytes:?}: {message}");
        assert_eq!(bench.read("f"), bytes);
    }
}

#[test]
fn paths_that_are_not_text_files_are_rejected_with_the_reason() {
    use std::os::unix::fs::symlink;
    let bench = Bench::new();
    bench.write("d/f", "one");
    symlink("loop", bench.path("loop")).unwrap();
    let edit = |path: &str| bench.error("EditFile", json!({"path": path, "oldText": "one", "newText": "two"}));
    assert!(edit("d").1.contains("directory"));
    assert!(edit("loop").1.contains("symlinks"));
    assert_eq!(edit("none/f").0, ErrorCode::FileNotFound);
    assert!(edit("d/f/g").1.contains("not a directory"));
    let plan = bench.plan("EditFile", json!({"path": "d/f", "oldText": "one", "newText": "two"})).unwrap();
    fs::remove_file(bench.path("d/f")).unwrap();
    symlink("../other", bench.path("d/f")).unwrap();
    bench.write("other", "one");
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    assert_eq!(bench.read("other"), b"one");
}

#[test]
fn very_long_lines_are_shortened_in_diffs_and_errors() {
    let bench = Bench::new();
    let long = "x, ".repeat(1_000_000);
    bench.write("f", format!("{long}one{long}"));
    let plan = bench.plan("EditFile", json!({"path": "f", "oldText": "one", "newText": "two"})).unwrap();
    let diff = plan.proposal.clone().unwrap().diff.to_string();
    assert!(diff.len() < 4_000 && diff.contains("one") && diff.contains("two"), "{} bytes", diff.len());
    bench.run(plan);
    assert!(bench.read("f") == format!("{long}two{long}").as_bytes());
    for old in ["x, x, x", "x, z, x", "one"] {
        let (_, message) = bench.error("EditFile", json!({"path": "f", "oldText": old, "newText": "y"}));
        assert!(message.len() < 4_000, "{} bytes", message.len());
    }
}

#[test]
fn str_replace_editor_edits_and_names_other_tools_for_other_commands() {
    let bench = Bench::new();
    bench.write("f", "one\n");
    let call = |arguments: Value| bench.call("str_replace_based_edit_tool", arguments).error.map(|error| error.message);
    assert_eq!(call(json!({"command": "str_replace", "path": "f", "old_str": "one", "new_str": "two"})), None);
    assert_eq!(call(json!({"command": "create", "path": "new", "file_text": "text\n"})), None);
    assert_eq!((bench.read("f"), bench.read("new")), (b"two\n".to_vec(), b"text\n".to_vec()));
    let refused = |arguments: Value, part: &str| {
        let message = call(arguments).unwrap();
        assert!(message.contains(part), "{message}");
    };
    refused(json!({"command": "view", "path": "f"}), "ReadFile");
    refused(json!({"command": "insert", "path": "f", "insert_line": 1, "new_str": "x"}), "str_replace");
    refused(json!({"command": "create", "path": "f", "file_text": "x"}), "is empty, and");
    refused(json!({"command": "delete", "path": "f"}), "unknown command");
    bench.output("str_replace_editor", json!({"path": "f", "old_str": "two", "new_str": "three"}));
    assert_eq!(bench.read("f"), b"three\n");
}
