use super::*;
use std::os::unix::fs::symlink;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"oldText": old, "newText": new}]})
}

#[test]
fn edits_are_proposed_before_they_are_written() {
    let bench = Bench::new();
    bench.write("src/a.rs", "one\ntwo\nthree\n");
    let plan = bench.plan("EditFile", edit("src/a.rs", "two", "2")).unwrap();
    let proposal = plan.proposal.clone().unwrap();
    assert_eq!(plan.summary, "Edit src/a.rs +1 −1");
    assert_eq!(proposal.diff.to_string(), "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    assert_eq!((proposal.paths, proposal.bytes), (vec![bench.path("src/a.rs")], 12));
    assert!(plan.changes);
    assert_eq!(bench.read("src/a.rs"), b"one\ntwo\nthree\n");
    assert_eq!(bench.run(plan).status, ToolStatus::Succeeded);
    assert_eq!(bench.read("src/a.rs"), b"one\n2\nthree\n");
}

#[test]
fn a_file_changed_since_its_proposal_is_a_conflict() {
    let bench = Bench::new();
    bench.write("f", "one");
    for (tool, arguments) in [("EditFile", edit("f", "one", "two")), ("WriteFile", json!({"path": "f", "content": "two"}))] {
        bench.write("f", "one");
        let plan = bench.plan(tool, arguments).unwrap();
        bench.write("f", "theirs");
        let error = bench.run(plan).error.unwrap();
        assert_eq!(error.code, ErrorCode::Conflict);
        assert!(error.message.contains("read it again"), "{error}");
        assert_eq!(bench.read("f"), b"theirs");
    }
    let plan = bench.plan("WriteFile", json!({"path": "new", "content": "mine"})).unwrap();
    bench.write("new", "theirs");
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    assert_eq!(bench.read("new"), b"theirs");
}

#[test]
fn several_edits_are_applied_in_order_or_not_at_all() {
    let bench = Bench::new();
    bench.write("f", "a b c");
    let both =
        |second: &str| json!({"path": "f", "edits": [{"oldText": "a", "newText": "x"}, {"oldText": second, "newText": "y"}]});
    let (_, message) = bench.error("EditFile", both("a"));
    assert!(message.contains("`edits[1].oldText` is not in `f`"), "{message}");
    assert_eq!(bench.read("f"), b"a b c");
    bench.output("EditFile", both("x b"));
    assert_eq!(bench.read("f"), b"y c");
}

#[test]
fn an_ambiguous_passage_is_an_error_that_lists_its_lines() {
    let bench = Bench::new();
    bench.write("f", "x\ny\r\nx\nz x\n");
    let (code, message) = bench.error("EditFile", edit("f", "x", "q"));
    assert_eq!(code, ErrorCode::InvalidRequest);
    assert!(message.contains("3 times, at lines 1, 3, 4"), "{message}");
    bench.output("EditFile", json!({"path": "f", "edits": [{"oldText": "x", "newText": "q", "replaceAll": true}]}));
    assert_eq!(bench.read("f"), b"q\ny\r\nq\nz q\n");
}

#[test]
fn a_missing_passage_is_an_error_that_shows_the_closest_match() {
    let bench = Bench::new();
    bench.write("f", "fn main() {\n    println!(\"hello\");\n}\n");
    let (_, message) = bench.error("EditFile", edit("f", "println!(\"hallo\");", "x"));
    assert!(message.contains("line 2") && message.contains("println!(\"hello\");"), "{message}");
    let (_, message) = bench.error("EditFile", edit("f", "fn main() {\n  println!(\"hi\");", "x"));
    assert!(message.contains("line 1 (the whitespace or a later line differs)"), "{message}");
    let (_, message) = bench.error("EditFile", edit("f", "0123456789", "x"));
    assert!(message.contains("No similar text found"), "{message}");
}

#[test]
fn the_reason_for_a_failed_match_requires_read_permission() {
    let bench = Bench::new();
    bench.write("secret", "password = hunter2\n");
    let plan = bench.plan("EditFile", edit("secret", "password = ?", "x")).unwrap();
    assert_eq!(plan.actions.iter().map(Action::capability).collect::<Vec<_>>(), ["File.Read"]);
    assert!(!plan.changes && plan.proposal.is_none());
    assert!(!plan.summary.contains("hunter2"));
}

#[test]
fn an_empty_old_text_creates_a_file_but_does_not_edit_existing_ones() {
    let bench = Bench::new();
    bench.output("EditFile", edit("a/new", "", "text\n"));
    assert_eq!(bench.read("a/new"), b"text\n");
    let (code, message) = bench.error("EditFile", edit("a/new", "", "more"));
    assert_eq!((code, message.contains("is empty, and")), (ErrorCode::InvalidRequest, true));
    let (code, message) = bench.error("EditFile", edit("a/nev", "x", "y"));
    assert_eq!(code, ErrorCode::FileNotFound);
    assert!(message.contains("did you mean `a/new`"), "{message}");
}

#[test]
fn binary_files_are_not_edited() {
    let bench = Bench::new();
    bench.write("b", b"\0\x01\x02text");
    bench.write("u", b"\xFF\xFEt\0\x00\xD8");
    assert!(bench.error("EditFile", edit("b", "text", "x")).1.contains("binary"));
    assert!(bench.error("EditFile", edit("u", "t", "x")).1.contains("not valid in its own encoding"));
    bench.write("l", b"caf\xE9");
    assert!(bench.error("EditFile", edit("l", "caf", "日本")).1.contains("latin-1"));
    assert_eq!(bench.read("l"), b"caf\xE9");
}

#[test]
fn rewritten_files_keep_their_line_endings_and_encoding() {
    let cases: &[(&[u8], &str, &[u8])] = &[
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\ny", b"x\ny"),
        (b"a\r\nb\nc\r\n", "a\nb\nnew\nc\n", b"a\r\nb\nnew\nc\r\n"),
        (b"a\r\n", "x\r\ny\n", b"x\r\ny\n"),
        (b"\xEF\xBB\xBFa", "b", b"\xEF\xBB\xBFb"),
        (b"\xFF\xFEa\0", "b", b"\xFF\xFEb\0"),
        (b"\xFE\xFF\0a", "b", b"\xFE\xFF\0b"),
        (b"caf\xE9", "th\u{e9}", b"th\xE9"),
        (b"caf\xE9", "日", "日".as_bytes()),
        (b"\0\0\0", "text", b"text"),
        (b"", "a\n", b"a\n"),
    ];
    for (old, content, new) in cases {
        let bench = Bench::new();
        bench.write("f", old);
        let output = bench.output("WriteFile", json!({"path": "f", "content": content}));
        assert_eq!(bench.read("f"), *new, "{content:?}");
        assert_eq!(output, format!("Wrote {} bytes to f", new.len()));
    }
}

#[test]
fn writing_through_a_link_writes_its_target() {
    let bench = Bench::new();
    bench.write("real", "old");
    symlink("real", bench.path("link")).unwrap();
    bench.output("WriteFile", json!({"path": "link", "content": "new"}));
    assert_eq!(bench.read("real"), b"new");
    assert!(bench.path("link").is_symlink());
}

#[test]
fn directories_cannot_be_written() {
    let bench = Bench::new();
    bench.write("d/f", "x");
    for path in [".", "d", "d/", "new/"] {
        let (code, message) = bench.error("WriteFile", json!({"path": path, "content": "x"}));
        assert_eq!(code, ErrorCode::InvalidRequest, "{path}: {message}");
    }
}

#[test]
fn missing_directories_are_created_unless_disabled() {
    let bench = Bench::new();
    let (code, message) = bench.error("WriteFile", json!({"path": "a/b/f", "content": "x", "createDirectories": false}));
    assert_eq!(code, ErrorCode::FileNotFound);
    assert!(message.contains("createDirectories"), "{message}");
    assert!(!bench.path("a").exists());
    bench.output("WriteFile", json!({"path": "a/b/f", "content": "x"}));
    assert_eq!(bench.read("a/b/f"), b"x");
}

#[test]
fn notes_mention_changes_that_a_diff_cannot_show() {
    let bench = Bench::new();
    let notes = |path: &str, content: &str| {
        bench.plan("WriteFile", json!({"path": path, "content": content})).unwrap().proposal.unwrap().notes
    };
    bench.write("crlf", "a\r\n");
    bench.write("lf", "a\n");
    bench.write("bom", b"\xEF\xBB\xBFa");
    bench.write("bin", b"\0\0");
    assert_eq!(notes("new", "x"), ["creates the file"]);
    assert_eq!(notes("crlf", "b\n"), ["line endings stay CRLF"]);
    assert_eq!(notes("lf", "a\r\n"), ["line endings change from LF to CRLF", "the text does not change"]);
    assert_eq!(notes("bom", "b"), ["encoding stays UTF-8 with BOM"]);
    assert_eq!(notes("bin", "b"), ["replaces 2 bytes that are not text and not shown"]);
}

#[test]
fn a_large_file_is_replaced_in_bounded_time() {
    let bench = Bench::new();
    let old: Vec<_> = (0..200_000).map(|line| format!("old {line}{}", if line % 2 == 0 { "\r" } else { "" })).collect();
    let new: Vec<_> = (0..200_000).map(|line| format!("new {line}")).collect();
    bench.write("f", old.join("\n"));
    bench.output("WriteFile", json!({"path": "f", "content": new.join("\n")}));
    assert!(bench.read("f").starts_with(b"new 0\r\nnew 1\nnew 2\r\n"));
    let (_, message) = bench.error("EditFile", edit("f", "nothing like it at all", "x"));
    assert!(message.contains("No similar text found"), "{message}");
}

#[test]
fn bare_repositories_are_protected_without_a_git_name() {
    let bench = Bench::new();
    for (name, content) in [("deep/repo/HEAD", "ref: refs/heads/x\n"), ("deep/repo/objects/a", ""), ("deep/repo/refs/a", "")] {
        bench.write(name, content);
    }
    bench.write("half/objects/a", "");
    bench.write("half/HEAD", "");
    bench.write("plain/config", "[core]\n");
    let refused = ["deep/repo/config", "deep/repo/hooks/pre-commit", "deep/repo/INFO/attributes", "half/refs/heads/main"];
    for path in refused {
        let (code, message) = bench.error("WriteFile", json!({"path": path, "content": "[core]\n"}));
        assert_eq!(code, ErrorCode::PolicyDenied, "{path}: {message}");
        assert!(!bench.path(path).exists(), "{path}");
    }
    for path in ["deep/repo/description", "deep/config", "plain/config", "half/config", "half/info/x"] {
        bench.output("WriteFile", json!({"path": path, "content": "x\n"}));
    }
}

#[test]
fn content_with_nul_bytes_is_noted() {
    let bench = Bench::new();
    bench.write("f", "one\n");
    for (tool, arguments) in [
        ("WriteFile", json!({"path": "new", "content": "a\0b"})),
        ("EditFile", json!({"path": "f", "oldText": "one", "newText": "a\0b"})),
    ] {
        let plan = bench.plan(tool, arguments.clone()).unwrap();
        assert!(plan.proposal.unwrap().notes.iter().any(|note| note.contains("NUL")));
        assert!(bench.output(tool, arguments).contains("has a NUL byte"));
    }
}
