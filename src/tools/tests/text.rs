//! Tests of `TextInspect` and `TextPatch`, which work on sections and lines of text.

use super::*;
use crate::tools::document::content::Form;
use proptest::prelude::*;

const GUIDE: &str =
    "# Guide\n\nIntro.\n\n## Install\n\nRun it.\n\n### Linux\n\napt\n\n## Usage\n\n### Linux\n\nstart\n\n## License\n\nMIT\n";

fn guide() -> Bench {
    let bench = Bench::new();
    bench.write("guide.md", GUIDE);
    bench
}

/// Returns the content of the file after one operation.
#[track_caller]
fn after(operation: Value) -> String {
    let bench = guide();
    bench.output("TextPatch", json!({"path": "guide.md", "operations": [operation]}));
    String::from_utf8(bench.read("guide.md")).unwrap()
}

#[test]
fn the_outline_of_a_document_has_levels_and_lines() {
    let told = guide().output("TextInspect", json!({"path": "guide.md"}));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], format!("guide.md: Markdown, UTF-8, 21 lines, {} bytes", GUIDE.len()));
    assert_eq!(
        lines[1..],
        [
            "1-21: # Guide",
            "5-12:   ## Install",
            "9-12:     ### Linux",
            "13-18:   ## Usage",
            "15-18:     ### Linux",
            "19-21:   ## License"
        ]
    );
}

#[test]
fn argument_names_of_other_agents_are_accepted_in_any_case() {
    let bench = guide();
    for arguments in [
        json!({"FilePath": "guide.md", "Mode": "structure", "Query": null, "Regex": false, "Context": 0}),
        json!({"file_path": "guide.md", "mode": "STRUCTURE"}),
        json!({"filePath": "guide.md"}),
    ] {
        assert!(bench.output("TextInspect", arguments).contains("13-18:   ## Usage"));
    }
    let search = json!({"FilePath": "guide.md", "Mode": "search", "Query": "a.t", "Regex": true, "Context": 1});
    assert!(bench.output("text_inspect", search).contains("11:apt"));
}

#[test]
fn searches_report_the_section_of_each_match() {
    let told = guide().output("TextInspect", json!({"path": "guide.md", "query": "apt|start", "regex": true, "context": 1}));
    assert!(told.starts_with("2 matches in guide.md\n"), "{told}");
    assert!(told.contains("[Guide > Install > Linux, lines 9-12]\n10-\n11:apt\n12-"), "{told}");
    assert!(told.contains("[Guide > Usage > Linux, lines 15-18]\n16-\n17:start"), "{told}");
    let within = guide().output("TextInspect", json!({"path": "guide.md", "query": "art", "section": "Usage"}));
    assert!(within.starts_with("1 match in `Guide > Usage` of guide.md") && !within.contains("apt"), "{within}");
    assert!(
        guide().output("TextInspect", json!({"path": "guide.md", "query": "INTRO", "ignoreCase": true})).contains("3:Intro.")
    );
    assert!(guide().output("TextInspect", json!({"path": "guide.md", "query": "R.n"})).starts_with("no line"));
}

#[test]
fn sections_are_shown_with_their_line_range() {
    let told = guide().output("TextInspect", json!({"path": "guide.md", "section": "## usage"}));
    assert_eq!(told, "[`Guide > Usage` in guide.md, lines 13-18]\n## Usage\n\n### Linux\n\nstart");
}

#[test]
fn invalid_argument_combinations_are_reported() {
    let bench = guide();
    bench.write("binary", [0_u8, 1, 2]);
    let cases = [
        (json!({"path": "guide.md", "mode": "words"}), "it must be `structure`"),
        (json!({"path": "guide.md", "mode": "search"}), "`query` is missing"),
        (json!({"path": "guide.md", "mode": "section"}), "`section` is missing"),
        (json!({"path": "guide.md", "mode": "structure", "query": "x"}), "`query` is for"),
        (json!({"path": "guide.md", "mode": "structure", "section": "x"}), "`section` is for"),
        (json!({"path": "guide.md", "query": "(", "regex": true}), "omit `regex`"),
        (json!({"path": "guide.md", "query": "x", "context": 21}), "at most 20"),
        (json!({"path": "guide.md", "section": "Usag"}), "did you mean `Guide > Usage` (line 13)?"),
        (
            json!({"path": "guide.md", "section": "Linux"}),
            "`Guide > Install > Linux` (line 9), `Guide > Usage > Linux` (line 15)",
        ),
        (json!({"path": "guide.md", "section": "zzz"}), "sections: `Guide` (line 1)"),
        (json!({"path": "."}), "ListDirectory"),
        (json!({"path": "binary"}), "not text"),
    ];
    for (arguments, part) in cases {
        let (code, message) = bench.error("TextInspect", arguments);
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn matches_sections_context_and_long_lines_are_limited() {
    let bench = Bench::new();
    for (count, cut) in [(199, false), (200, false), (201, true)] {
        bench.write("f.txt", "x\n".repeat(count));
        let told = bench.output("TextInspect", json!({"path": "f.txt", "query": "x"}));
        assert_eq!(told.lines().filter(|line| line.ends_with(":x")).count(), count.min(200));
        assert_eq!(told.contains("[the first 200 of 201 matches shown"), cut);
    }
    for (count, cut) in [(999, false), (1000, false), (1001, true)] {
        bench.write("f.md", "# x\n".repeat(count));
        let told = bench.output("TextInspect", json!({"path": "f.md"}));
        assert_eq!(told.lines().filter(|line| line.ends_with("# x")).count(), count.min(1000));
        assert_eq!(told.contains("[the first 1000 of 1001 shown"), cut);
    }
    for (context, taken) in [(19, true), (20, true), (21, false)] {
        let call = bench.call("TextInspect", json!({"path": "f.txt", "query": "x", "context": context}));
        assert_eq!(call.status == ToolStatus::Succeeded, taken);
    }
    for (length, cut) in [(1021, false), (1022, false), (1023, true)] {
        bench.write("long.txt", "y".repeat(length));
        assert_eq!(
            bench.output("TextInspect", json!({"path": "long.txt", "query": "y"})).contains("1 more bytes]"),
            cut,
            "{length}"
        );
    }
}

#[test]
fn searches_do_not_find_redacted_text() {
    let bench = Bench::new();
    bench.write("f.md", "# A\n\nPASSWORD=Xk29fjQ81ms0Zp\n");
    assert!(bench.output("TextInspect", json!({"path": "f.md", "query": "Xk29fj"})).starts_with("no line"));
    let told = bench.output("TextInspect", json!({"path": "f.md", "section": "A"}));
    assert!(told.contains("PASSWORD=[redacted:") && !told.contains("Xk29fj"), "{told}");
}

#[test]
fn sections_are_replaced_with_or_without_their_heading() {
    let body = after(json!({"operation": "replace", "section": "Guide > Usage", "content": "Type it.\n"}));
    assert_eq!(body, GUIDE.replace("### Linux\n\nstart\n", "Type it.\n"));
    let whole = after(json!({"operation": "replace", "section": "## Usage", "content": "## Use\n\nType it."}));
    assert_eq!(whole, GUIDE.replace("## Usage\n\n### Linux\n\nstart\n", "## Use\n\nType it.\n"));
    let last = after(json!({"operation": "replace", "section": "License", "content": "None"}));
    assert_eq!(last, GUIDE.replace("MIT", "None"));
}

#[test]
fn text_is_inserted_before_and_after_a_section() {
    let before = after(json!({"operation": "insertBefore", "section": "Usage", "content": "## Notes\n\nx\n"}));
    assert_eq!(before, GUIDE.replace("## Usage", "## Notes\n\nx\n\n## Usage"));
    let behind = after(json!({"operation": "insert_after", "section": "Usage", "content": "## Notes\n\nx"}));
    assert_eq!(behind, GUIDE.replace("## License", "## Notes\n\nx\n\n## License"));
    let end = after(json!({"operation": "insertAfter", "section": "License", "content": "## End"}));
    assert_eq!(end, format!("{GUIDE}\n## End\n"));
}

#[test]
fn a_section_is_deleted_with_its_subsections() {
    assert_eq!(
        after(json!({"operation": "delete", "section": "Install"})),
        GUIDE.replace("## Install\n\nRun it.\n\n### Linux\n\napt\n\n", "")
    );
    assert_eq!(after(json!({"operation": "delete", "section": "License"})), GUIDE.replace("\n## License\n\nMIT\n", ""));
}

#[test]
fn lines_are_replaced_inserted_and_deleted() {
    let cases = [
        (json!({"operation": "replace", "startLine": 2, "content": "B"}), "1\nB\n3\n"),
        (json!({"operation": "replace", "startLine": 1, "endLine": 3, "content": "x\ny\n"}), "x\ny\n"),
        (json!({"operation": "replace", "startLine": 2, "content": ""}), "1\n3\n"),
        (json!({"operation": "delete", "start_line": "2", "end_line": 3}), "1\n"),
        (json!({"operation": "insertBefore", "startLine": 1, "content": "0\n"}), "0\n1\n2\n3\n"),
        (json!({"operation": "insertBefore", "startLine": 4, "content": "4"}), "1\n2\n3\n4\n"),
        (json!({"operation": "insertAfter", "startLine": 3, "content": "4"}), "1\n2\n3\n4\n"),
        (json!({"operation": "insertAfter", "startLine": 1, "endLine": 2, "content": "\n"}), "1\n2\n\n3\n"),
        (json!({"operation": "replace", "startLine": 2, "content": "B", "expected": "2"}), "1\nB\n3\n"),
    ];
    for (operation, expected) in cases {
        let bench = Bench::new();
        bench.write("f", "1\n2\n3\n");
        bench.output("TextPatch", json!({"path": "f", "operations": [operation]}));
        assert_eq!(String::from_utf8(bench.read("f")).unwrap(), expected, "{operation}");
    }
    let bench = Bench::new();
    bench.write("empty", "");
    bench.output("TextPatch", json!({"path": "empty", "operation": "insertBefore", "startLine": 1, "content": "x"}));
    assert_eq!(bench.read("empty"), b"x\n");
}

#[test]
fn operations_refer_to_original_lines_and_are_applied_all_or_none() {
    let bench = Bench::new();
    bench.write("f", "1\n2\n3\n4\n5\n");
    let operations = json!([
        {"operation": "delete", "startLine": 4},
        {"operation": "insertAfter", "startLine": 1, "content": "a\nb\nc"},
        {"operation": "replace", "startLine": 5, "content": "V"},
    ]);
    bench.output("TextPatch", json!({"path": "f", "operations": operations}));
    assert_eq!(bench.read("f"), b"1\na\nb\nc\n2\n3\nV\n");
    let meet = json!([
        {"operation": "replace", "startLine": 2, "endLine": 3, "content": "x"},
        {"operation": "delete", "startLine": 3},
    ]);
    let (_, message) = bench.error("TextPatch", json!({"path": "f", "operations": meet}));
    assert!(message.contains("`operations[0]` and `operations[1]` overlap"), "{message}");
    assert_eq!(bench.read("f"), b"1\na\nb\nc\n2\n3\nV\n");
}

#[test]
fn a_failing_text_patch_gives_the_reason_and_changes_nothing() {
    let bench = guide();
    bench.write("data.json", "{\"a\": 1}");
    let one = |operation: Value| json!({"path": "guide.md", "operations": [operation]});
    let cases = [
        (json!({"path": "guide.md", "operations": []}), "`operations` is empty"),
        (one(json!({"operation": "swap", "startLine": 1})), "it must be `replace`"),
        (one(json!({"operation": "replace", "startLine": 1})), "`operations[0].content` is missing"),
        (one(json!({"operation": "delete", "startLine": 1, "content": "x"})), "takes no `content`"),
        (one(json!({"operation": "insertAfter", "startLine": 1, "content": ""})), "is empty"),
        (one(json!({"operation": "delete"})), "has no position"),
        (one(json!({"operation": "delete", "section": "Usage", "startLine": 1})), "use only one of them"),
        (one(json!({"operation": "delete", "startLine": 0})), "at least 1"),
        (one(json!({"operation": "delete", "startLine": 3, "endLine": 2})), "not before it"),
        (one(json!({"operation": "delete", "startLine": 22})), "has 21 lines"),
        (one(json!({"operation": "delete", "startLine": 21, "endLine": 22})), "has 21 lines"),
        (one(json!({"operation": "delete", "section": "Linux"})), "add the parent headings"),
        (one(json!({"operation": "delete", "startLine": 1, "expected": "Guide"})), "lines are now:\n# Guide"),
        (one(json!({"operation": "replace", "startLine": 1, "content": "# Guide"})), "change nothing"),
        (json!({"path": "data.json", "operation": "delete", "section": "a (number)"}), "use `startLine`"),
    ];
    for (arguments, part) in cases {
        let (code, message) = bench.error("TextPatch", arguments);
        assert_eq!(code, ErrorCode::InvalidRequest, "{message}");
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(bench.read("guide.md"), GUIDE.as_bytes());
    let (code, message) = bench.error("TextPatch", json!({"path": "none.md", "operation": "delete", "startLine": 1}));
    assert_eq!((code, message.contains("WriteFile")), (ErrorCode::FileNotFound, true), "{message}");
}

#[test]
fn toml_tables_are_changed_by_header() {
    let bench = Bench::new();
    bench.write("c.toml", "top = 1\n[a]\nx = 1\n\n[b]\ny = 1\n");
    let patch = |operation: Value| bench.output("TextPatch", json!({"path": "c.toml", "operations": [operation]}));
    patch(json!({"operation": "replace", "section": "[a]", "content": "x = 2\nz = 3"}));
    patch(json!({"operation": "replace", "section": "top", "content": "top = 5"}));
    patch(json!({"operation": "insertAfter", "section": "[b]", "content": "q = 7"}));
    assert_eq!(String::from_utf8(bench.read("c.toml")).unwrap(), "top = 5\n[a]\nx = 2\nz = 3\n\n[b]\ny = 1\nq = 7\n");
}

#[test]
fn line_edits_are_rejected_if_the_file_changed_since_it_was_read() {
    let bench = guide();
    bench.output("ReadFile", json!({"path": "guide.md"}));
    bench.write("guide.md", format!("new\n{GUIDE}"));
    let (code, message) = bench.error("TextPatch", json!({"path": "guide.md", "operation": "delete", "startLine": 1}));
    assert_eq!((code, message.contains("read it again")), (ErrorCode::Conflict, true), "{message}");
    // A section is found by its name.
    bench.output("TextPatch", json!({"path": "guide.md", "operation": "delete", "section": "License"}));
    bench.output("ReadFile", json!({"path": "guide.md"}));
    bench.output("TextPatch", json!({"path": "guide.md", "operation": "delete", "startLine": 1}));
    assert!(bench.read("guide.md").starts_with(b"# Guide"));
}

#[test]
fn a_file_changed_after_the_plan_is_a_conflict() {
    let bench = guide();
    let plan = bench.plan("TextPatch", json!({"path": "guide.md", "operation": "delete", "section": "License"})).unwrap();
    assert!(plan.proposal.as_ref().unwrap().diff.to_string().contains("-## License"));
    bench.write("guide.md", "other\n");
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    assert_eq!(bench.read("guide.md"), b"other\n");
}

#[test]
fn redacted_text_is_preserved_and_restored() {
    let key = "-----BEGIN PRIVATE KEY-----\nCn9uq2kE2vmN3KkWPB6sZLneiwvs6bvNEcNTr7qSXyDCFN4IFPYAwF8ylQEFKHIX\n-----END PRIVATE KEY-----\n";
    let bench = Bench::new();
    let text = format!("# A\n\ntoken: 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\n\n{key}\n# B\n\nlast\n");
    bench.write("f.md", &text);
    let shown = bench.output("ReadFile", json!({"path": "f.md"}));
    let line = shown.lines().nth(2).unwrap();
    bench.output(
        "TextPatch",
        json!({"path": "f.md", "operation": "replace", "startLine": 3, "content": format!("{line} # mine"), "expected": line}),
    );
    assert_eq!(bench.read("f.md"), text.replace("kYn6t", "kYn6t # mine").as_bytes());
    bench.write("f.md", &text);
    for (operation, part) in [
        (json!({"operation": "delete", "startLine": 5}), "cut through"),
        (json!({"operation": "delete", "startLine": 6, "endLine": 8}), "cut through"),
        (json!({"operation": "delete", "startLine": 11}), "also set `expected`"),
        (json!({"operation": "replace", "startLine": 1, "content": "[redacted:github-token:00000000]"}), "replaces a secret"),
    ] {
        let bench = Bench::new();
        bench.write("f.md", &text);
        let (_, message) = bench.error("TextPatch", json!({"path": "f.md", "operations": [operation]}));
        assert!(message.contains(part), "{message}");
        assert_eq!(bench.read("f.md"), text.as_bytes());
    }
    bench.write("f.md", &text);
    bench.output("TextPatch", json!({"path": "f.md", "operation": "replace", "section": "B", "content": "end"}));
    assert_eq!(bench.read("f.md"), text.replace("last", "end").as_bytes());
}

#[test]
fn text_patch_errors_do_not_reveal_unreadable_files() {
    let mut bench = guide();
    bench.settings.paths.may_read = Arc::new(|_| false);
    let (_, message) = bench.error("TextPatch", json!({"path": "guide.md", "operation": "delete", "section": "zzz"}));
    assert!(!message.contains("Guide") && message.contains("cannot read that file"), "{message}");
}

fn encoded(form: Form, text: &str) -> Vec<u8> {
    form.encode(text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_patches_leave_all_other_lines_byte_identical(
        lines in prop::collection::vec(("[a-zé \u{b}\r]{0,6}", any::<bool>()), 1..12),
        content in prop::collection::vec("[x-z]{1,4}", 1..4),
        at in any::<prop::sample::Index>(),
        length in 0..4usize,
        kind in 0..4usize,
        ended in any::<bool>(),
        form in prop::sample::select(vec![Form::Utf8, Form::Utf8Bom, Form::Utf16Le, Form::Utf16Be]),
    ) {
        let bench = Bench::new();
        let mut whole: Vec<String> = lines.iter().map(|(text, crlf)| format!("{text}{}", if *crlf { "\r\n" } else { "\n" })).collect();
        if !ended {
            let last = whole.last_mut().unwrap();
            *last = last.trim_end_matches(['\r', '\n']).to_owned() + "q";
        }
        bench.write("f", encoded(form, &whole.concat()));
        let first = at.index(whole.len());
        let end = (first + length).min(whole.len() - 1);
        let operation = ["replace", "delete", "insertBefore", "insertAfter"][kind];
        let mut arguments = json!({"path": "f", "operation": operation, "startLine": first + 1, "endLine": end + 1});
        if kind != 1 {
            arguments["content"] = json!(content.join("\n") + "\n");
        }
        let result = bench.call("TextPatch", arguments);
        let after = bench.read("f");
        if let Some(error) = result.error {
            prop_assert!(error.message.contains("change nothing"), "{error}");
            prop_assert_eq!(after, encoded(form, &whole.concat()));
            return Ok(());
        }
        let document = crate::tools::document::content::Document::decode(&after);
        if let Ok(document) = document {
            prop_assert!(document.text.is_empty() || document.form == form);
            let (before, behind) = match kind {
                2 => (first, first),
                3 => (end + 1, end + 1),
                _ => (first, end + 1),
            };
            let (head, tail) = (whole[..before].concat(), whole[behind..].concat());
            let cut = head.trim_end_matches(['\r', '\n']);
            prop_assert!(document.text.starts_with(if tail.is_empty() { cut } else { &head }), "{:?}", document.text);
            prop_assert!(document.text.ends_with(&tail), "{:?}", document.text);
            prop_assert!(kind == 1 || document.text.ends_with('\n') == ended, "{:?}", document.text);
        }
    }
}
