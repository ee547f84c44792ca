use super::*;
use crate::tools::write::document::{Document, Form};
use crate::tools::write::replacement::{Which, replace};
use proptest::prelude::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

const FORMS: [Form; 5] = [Form::Utf8, Form::Utf8Bom, Form::Utf16Le, Form::Utf16Be, Form::Latin1];

/// Lines of a file, each with its own ending; the last one may have none.
fn lines() -> impl Strategy<Value = Vec<(String, &'static str)>> {
    let ending = prop_oneof![Just("\n"), Just("\r\n")];
    (proptest::collection::vec(("[a-z éÿ\t\r]{0,8}", ending), 1..12), any::<bool>()).prop_map(|(mut lines, ended)| {
        // A CR before an LF would be a CRLF of its own.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_an_edit_does_not_touch_stays_to_the_byte(
        mut lines in lines(),
        at in any::<prop::sample::Index>(),
        form in prop::sample::select(&FORMS[..]),
        mode in prop::sample::select(&[0o644u32, 0o600, 0o755, 0o664][..]),
        new in "[a-zé]{0,6}(\n[a-z]{1,4}){0,3}",
    ) {
        let at = at.index(lines.len());
        lines[at].0 = format!("{}@MARK@{}", lines[at].0, "z");
        let text = joined(&lines);
        // Only bytes that are not UTF-8 make a file latin-1.
        prop_assume!(form != Form::Latin1 || text.contains(['é', 'ÿ']));
        let before = form.encode(&text).unwrap();
        let bench = Bench::new();
        bench.write("f", &before);
        fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(mode)).unwrap();
        bench.output("EditFile", json!({"path": "f", "edits": [{"oldText": "@MARK@", "newText": new}]}));

        let (head, tail) = text.split_once("@MARK@").unwrap();
        let head = form.encode(head).unwrap();
        let tail_bytes = form.encode(tail).unwrap();
        // Without the BOM, which stands at the start only.
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
        // The whole text is given as context, and one line of it changes.
        let at = at.index(lines.len());
        let old = joined(&lines);
        prop_assume!(!old.is_empty());
        let mut expected = lines.clone();
        expected[at].0 = "@NEW@".to_owned();
        let new = joined(&expected).replace("\r\n", "\n");
        prop_assume!(old.replace("\r\n", "\n") != new);
        let result = replace(&old, &old.replace("\r\n", "\n"), &new, Which::TheOnly, &[]).unwrap();
        prop_assert_eq!(result.replace("\r\n", "\n"), new);
        for (index, (line, (_, ending))) in result.split_inclusive('\n').zip(&lines).enumerate() {
            if index != at && !ending.is_empty() {
                prop_assert_eq!(line.ends_with("\r\n"), *ending == "\r\n", "line {}", index);
            }
        }
    }

    #[test]
    fn any_bytes_that_decode_encode_to_themselves(bytes in proptest::collection::vec(any::<u8>(), 0..64), bom in 0usize..4) {
        let start: &[u8] = [&b""[..], b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xFE\xFF"][bom];
        let bytes = [start, &bytes].concat();
        if let Ok(document) = Document::decode(&bytes) {
            prop_assert_eq!(document.form.encode(&document.text).unwrap(), bytes);
        }
    }
}

#[test]
fn new_lines_end_as_the_lines_at_that_place() {
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
        let result = replace(text, old, new, Which::TheOnly, &[]).unwrap_or_else(|_| "error".to_owned());
        assert_eq!(result, expected, "{text:?} {old:?} {new:?}");
    }
}
