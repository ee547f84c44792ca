use super::*;
use proptest::prelude::*;

const TOKEN: &str = "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";
const PEM: &str = "-----BEGIN PRIVATE KEY-----\nCn9uq2kE2vmN3KkWPB6sZLneiwvs6bvNEcNTr7qSXyDCFN4IFPYAwF8ylQEFKHIX\nHRl7DzCwOjPvB8Vh+XMdr5pHToAD/y5V4FGMQfoUGh9SfQag9KxLICMpRTpvpTOB\nPZ8VMES6tspQ95fW\n-----END PRIVATE KEY-----\n";

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "f", "edits": [{"oldText": old, "newText": new}]})
}

#[test]
fn reads_redact_secrets_and_report_the_redactions() {
    let bench = Bench::new();
    bench.write("f", format!("name = x\ntoken = {TOKEN}\n{PEM}end\n"));
    let result = bench.call("ReadFile", json!({"path": "f"}));
    assert!(!result.output_text.contains(TOKEN) && !result.output_text.contains("Cn9uq2kE2"), "{}", result.output_text);
    assert!(result.output_text.starts_with("name = x\ntoken = [redacted:github-token:"), "{}", result.output_text);
    assert!(result.output_text.ends_with("]\nend\n"), "{}", result.output_text);
    let kinds: Vec<_> = result.redactions.iter().map(|redaction| (redaction.kind.as_str(), redaction.count)).collect();
    assert_eq!(kinds, [("github-token", 1), ("private-key", 1)]);
}

#[test]
fn partial_reads_have_the_same_markers_as_full_reads() {
    let bench = Bench::new();
    bench.write("f", format!("one\ntoken = {TOKEN}\npassword: \"Xk29fjQ81ms0Zp\"\nfour\n"));
    let whole = bench.output("ReadFile", json!({"path": "f"}));
    for (index, line) in whole.lines().enumerate() {
        let one = bench.output("ReadFile", json!({"path": "f", "offset": index + 1, "limit": 1}));
        assert_eq!(one.lines().next().unwrap(), line);
    }
}

#[test]
fn no_line_range_reveals_part_of_a_private_key() {
    let bench = Bench::new();
    bench.write("f", format!("before\n{PEM}after\n"));
    let secret: Vec<&str> = PEM.lines().filter(|line| !line.starts_with('-')).collect();
    for offset in 1..=8 {
        for limit in 1..=8 {
            let result = bench.call("ReadFile", json!({"path": "f", "offset": offset, "limit": limit}));
            let shown = secret.iter().find(|line| result.text_for_model().contains(**line));
            assert_eq!(shown, None, "{offset} {limit}: {}", result.output_text);
        }
    }
    let found = bench.output("Grep", json!({"path": "f", "pattern": "[A-Za-z]", "context": 1}));
    assert!(secret.iter().all(|line| !found.contains(line)) && found.contains("after"), "{found}");
}

#[test]
fn markers_are_written_back_as_the_original_bytes() {
    let bench = Bench::new();
    let before = format!("a = 1\r\ntoken = {TOKEN}\r\nb = 2\r\n");
    bench.write("f", &before);
    let shown = bench.output("ReadFile", json!({"path": "f"}));
    let line = shown.lines().nth(1).unwrap().to_owned();
    bench.output("EditFile", edit(&format!("{line}\nb = 2"), &format!("{line}\nb = 3")));
    assert_eq!(bench.read("f"), before.replace("b = 2", "b = 3").as_bytes());
    bench.output("WriteFile", json!({"path": "f", "content": shown.replace("a = 1", "a = 0")}));
    assert_eq!(bench.read("f"), before.replace("a = 1", "a = 0").as_bytes());
}

#[test]
fn proposals_show_no_secrets_but_write_the_real_bytes() {
    let bench = Bench::new();
    bench.write("f", format!("a = 1\ntoken = {TOKEN}\n{PEM}"));
    let plan = bench.plan("EditFile", edit("a = 1", "a = 2")).unwrap();
    let told = format!("{:?} {}", plan.proposal, plan.summary);
    assert!(!told.contains(TOKEN) && !told.contains("Cn9uq2kE2") && told.contains("[redacted:github-token:"), "{told}");
    bench.run(plan);
    assert_eq!(bench.read("f"), format!("a = 2\ntoken = {TOKEN}\n{PEM}").as_bytes());
}

#[test]
fn markers_that_cannot_be_restored_are_rejected() {
    let bench = Bench::new();
    bench.write("f", format!("a = 1\ntoken = {TOKEN}\n"));
    bench.write("g", "a = 1\n");
    let shown = bench.output("ReadFile", json!({"path": "f"}));
    let marker = shown.lines().nth(1).unwrap().strip_prefix("token = ").unwrap().to_owned();
    let foreign = "[redacted:github-token:00000000]";
    let half = &marker[..marker.len() - 5];
    for wrong in [foreign, "[redacted:github-token]", "[redacted:…:12]", half, "[REDACTED:github-token:12345678]"] {
        for (tool, arguments) in [
            ("WriteFile", json!({"path": "f", "content": format!("token = {wrong}\n")})),
            ("EditFile", edit("a = 1", wrong)),
            ("WriteFile", json!({"path": "new", "content": wrong})),
        ] {
            let (code, message) = bench.error(tool, arguments);
            assert_eq!(code, ErrorCode::InvalidRequest, "{wrong}");
            assert!(message.contains("nothing was written") && message.contains("ask the user"), "{message}");
        }
    }
    let (code, _) = bench.error("WriteFile", json!({"path": "g", "content": marker}));
    assert_eq!(code, ErrorCode::InvalidRequest, "the marker belongs to another file");
    assert_eq!(bench.read("f"), format!("a = 1\ntoken = {TOKEN}\n").as_bytes());
    assert!(!bench.path("new").exists());
}

#[test]
fn text_that_mentions_markers_is_unchanged() {
    let bench = Bench::new();
    bench.write("f", "A marker is `[redacted:KIND:8hex]` or [redacted:github-token:0123abcd].\nmore\n");
    bench.output("EditFile", edit("more", "less"));
    let shown = bench.output("ReadFile", json!({"path": "f"}));
    bench.output("WriteFile", json!({"path": "f", "content": shown}));
    assert_eq!(bench.read("f"), b"A marker is `[redacted:KIND:8hex]` or [redacted:github-token:0123abcd].\nless\n");
    bench.output("WriteFile", json!({"path": "code.rs", "content": "format!(\"[redacted:{kind}:{hash}]\")"}));
}

#[test]
fn commands_and_searches_reject_markers() {
    let bench = Bench::new();
    let marker = "[redacted:github-token:0123abcd]";
    for (tool, arguments) in [
        ("RunCommand", json!({"command": format!("echo {marker}")})),
        ("RunCommand", json!({"command": "cat", "stdin": marker})),
        ("Grep", json!({"pattern": marker})),
        ("ReadFile", json!({"path": marker})),
        ("WriteFile", json!({"path": marker, "content": "x"})),
    ] {
        let (code, message) = bench.error(tool, arguments);
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains("replaces a secret"), "{message}");
    }
}

#[test]
fn secrets_in_command_output_are_redacted_even_at_a_cut() {
    let bench = Bench::new();
    let bench = Bench { settings: ToolSettings { max_output_bytes: 1000, ..bench.settings.clone() }, ..bench };
    bench.write(".env", format!("TOKEN={TOKEN}\n"));
    assert!(!bench.output("RunCommand", json!({"command": "cat .env; cat .env >&2"})).contains("Joz2WleSn"));
    bench.write("many", format!("export A_TOKEN={TOKEN}\n").repeat(100));
    // Wherever the output is cut, no part of the token is shown.
    for from in 0..15 {
        let printed = bench.output("RunCommand", json!({"command": format!("tail -c +{} many", from + 1)}));
        assert!(printed.contains("truncated") && printed.contains("[redacted:"), "{printed}");
        assert!(!printed.contains("WleSn") && !printed.contains("0kYn6t"), "{from}: {printed}");
    }
}

#[test]
fn edit_errors_contain_no_secrets() {
    let bench = Bench::new();
    bench.write("f", format!("alpha\ntoken = {TOKEN}\n"));
    let (_, message) = bench.error("EditFile", edit("alpha\ntoken = something", "x"));
    assert!(message.contains("[redacted:github-token:") && !message.contains(TOKEN), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn edits_of_text_with_markers_never_change_a_secret(
        lines in proptest::collection::vec("[a-z =\"]{0,12}", 1..8),
        secrets in proptest::collection::vec((any::<prop::sample::Index>(), "[A-Za-z0-9]{36}", 0..4usize), 0..5),
        at in any::<prop::sample::Index>(),
        crlf in any::<bool>(),
    ) {
        let mut lines = lines;
        for (place, letters, form) in secrets {
            let line = match form {
                0 => format!("token: ghp_{letters}"),
                1 => format!("PASSWORD={letters}"),
                2 => format!("x = \"sk-proj-{letters}{letters}\","),
                _ => format!("-----BEGIN PRIVATE KEY-----\n{letters}{letters}\n-----END PRIVATE KEY-----"),
            };
            lines.insert(place.index(lines.len() + 1), line);
        }
        let ending = if crlf { "\r\n" } else { "\n" };
        let place = at.index(lines.len() + 1);
        let join = |lines: &[String]| lines.iter().map(|line| line.replace('\n', ending) + ending).collect::<String>();
        let mut before = lines.clone();
        before.insert(place, "@MARK@".to_owned());
        lines.insert(place, "changed".to_owned());
        let bench = Bench::new();
        bench.write("f", join(&before));
        let shown = bench.output("ReadFile", json!({"path": "f"}));
        bench.output("EditFile", edit("@MARK@", "changed"));
        prop_assert_eq!(bench.read("f"), join(&lines).into_bytes());
        bench.write("f", join(&before));
        bench.output("ReadFile", json!({"path": "f"}));
        bench.output("WriteFile", json!({"path": "f", "content": shown.replace("@MARK@", "changed")}));
        prop_assert_eq!(bench.read("f"), join(&lines).into_bytes());
    }
}

#[test]
fn edits_that_would_expose_a_secret_are_rejected() {
    let bench = Bench::new();
    let before = "a = 1\ndb_password = \"hunter2correcthorse\"\n";
    bench.write("f", before);
    let shown = bench.output("ReadFile", json!({"path": "f"}));
    for arguments in [edit("db_password = ", "note = "), edit("db_password", "x"), edit("hunter2", "hun ter2")] {
        bench.error("EditFile", arguments);
    }
    let (_, message) = bench.error("WriteFile", json!({"path": "f", "content": shown.replace("db_password", "note")}));
    assert!(message.contains("no longer be redacted") && !message.contains("hunter2"), "{message}");
    assert_eq!(bench.read("f"), before.as_bytes());
    bench.output("EditFile", edit("db_password", "database_password"));
    assert_eq!(bench.read("f"), before.replace("db_", "database_").as_bytes());
}

#[test]
fn replace_all_does_not_change_matches_inside_a_secret() {
    let bench = Bench::new();
    bench.write("f", format!("zip = g\ntoken = {TOKEN}\n"));
    bench.output("EditFile", json!({"path": "f", "edits": [{"oldText": "g", "newText": "g ", "replaceAll": true}]}));
    assert_eq!(bench.read("f"), format!("zip = g \ntoken = {TOKEN}\n").as_bytes());
}

#[test]
fn secrets_read_in_a_wrong_encoding_stay_redacted() {
    let bench = Bench::new();
    let text = format!("a = 1\ntoken = {TOKEN}\n");
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    bench.write("plain", &text);
    bench.write("odd", format!("1{text}"));
    bench.write("wide", wide(&text));
    for (path, encoding) in
        [("plain", "utf-16le"), ("odd", "utf-16be"), ("odd", "utf-16le"), ("wide", "latin1"), ("wide", "utf-8")]
    {
        bench.error("ReadFile", json!({"path": path, "encoding": encoding}));
        bench.error("ReadFile", json!({"path": path, "encoding": encoding, "offset": 1}));
    }
    let right = bench.output("ReadFile", json!({"path": "wide", "encoding": "utf-16le"}));
    assert!(right.starts_with("a = 1\ntoken = [redacted:"), "{right}");
    bench.write("other", wide("наше дело\n"));
    assert_eq!(bench.output("ReadFile", json!({"path": "other", "encoding": "utf-16le"})), "наше дело\n");
}

#[test]
fn searches_do_not_reveal_secrets_character_by_character() {
    let bench = Bench::new();
    bench.write("f", format!("token = {TOKEN}\ntoken = none\n"));
    for pattern in [&TOKEN[..8], "ghp_J.*", "[0-9]t$"] {
        let answer = bench.output("Grep", json!({"path": "f", "pattern": pattern}));
        assert!(answer.starts_with("no line matches"), "{answer}");
    }
    let answer = bench.output("Grep", json!({"path": "f", "pattern": "^token"}));
    assert_eq!(answer.lines().count(), 2, "{answer}");
}

#[test]
fn malformed_text_with_secrets_is_not_hashed() {
    let bench = Bench::new();
    let secret = b"password = \"Tr0ub4dor&3xyzzyQ\"\n";
    let cases: [(&str, Vec<u8>); 3] = [
        ("plain", secret.to_vec()),
        ("bom", [b"\xEF\xBB\xBF".as_slice(), secret, b"\xFF\n"].concat()),
        ("wide", [b"\xFF\xFE".to_vec(), secret.iter().flat_map(|byte| [*byte, 0]).collect(), b"x".to_vec()].concat()),
    ];
    for (name, content) in cases {
        bench.write(name, content);
        assert_eq!(bench.error("HashFile", json!({"path": name})).0, ErrorCode::PermissionDenied, "{name}");
    }
    bench.write("broken", b"\xEF\xBB\xBFnothing\xFF\n");
    assert!(bench.output("HashFile", json!({"path": "broken"})).starts_with("sha256 "));
}

#[test]
fn encodings_do_not_swallow_characters_that_identify_a_secret() {
    let bench = Bench::new();
    let secret = "password = \"Tr0ub4dor&3xyzzyQ\"\n";
    bench.write("f", format!("\u{c1}{secret}"));
    bench.write("g", format!("# \u{1b}$B\n{secret}"));
    for (name, encoding) in [
        ("f", "shift_jis"),
        ("f", "gbk"),
        ("f", "big5"),
        ("f", "euc-jp"),
        ("f", "euc-kr"),
        ("f", "gb18030"),
        ("g", "iso-2022-jp"),
    ] {
        let result = bench.call("ReadFile", json!({"path": name, "encoding": encoding}));
        let told = format!("{result:?}");
        assert!(!told.contains("Tr0ub") && !told.contains("xyzzyQ"), "{encoding}: {told}");
        let hidden = told.contains("[redacted:password:") || told.contains("without `encoding`");
        assert!(hidden, "{encoding}: {told}");
    }
    // Text in this encoding is decoded, with secrets redacted.
    let (japanese, _, _) = encoding_rs::SHIFT_JIS.encode("\u{65e5}\u{672c}\npassword = \"Tr0ub4dor&3xyzzyQ\"\n");
    bench.write("h", &japanese);
    let told = bench.output("ReadFile", json!({"path": "h", "encoding": "shift_jis"}));
    assert!(told.starts_with("\u{65e5}\u{672c}\n") && told.contains("[redacted:password:"), "{told}");
}
