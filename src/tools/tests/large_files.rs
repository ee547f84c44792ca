//! Tests of files that are too large for memory but that the policy allows to be changed.

use super::*;
use std::os::unix::fs::PermissionsExt;

const LINES: usize = 500_000;

/// Returns about 17 MB of numbered lines.
fn content(ending: &str) -> String {
    (0..LINES).map(|line| format!("line {line} of a file that is long{ending}")).collect::<Vec<_>>().concat()
}

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.settings.max_file_size_bytes = 1 << 30;
    bench
}

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "f", "oldText": old, "newText": new})
}

#[test]
fn an_edit_of_a_large_file_changes_only_the_matched_passage() {
    for (ending, bom) in [("\n", ""), ("\r\n", ""), ("\n", "\u{FEFF}")] {
        let bench = bench();
        let before = format!("{bom}{}", content(ending));
        bench.write("f", &before);
        fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(0o640)).unwrap();
        let plan = bench.plan("EditFile", edit("line 400000 of a file that is long\nline 400001 ", "new\nnëw ")).unwrap();
        let proposal = plan.proposal.clone().unwrap();
        assert_eq!(plan.summary, "Edit f +2 −2");
        assert!(
            proposal.diff.to_string().starts_with("--- a/f\n+++ b/f\n@@ -399998,8 +399998,8 @@\n line 399997 of"),
            "{}",
            proposal.diff
        );
        assert!(proposal.notes.iter().any(|note| note.contains("too large to compare")), "{:?}", proposal.notes);
        let expected =
            before.replace(&format!("line 400000 of a file that is long{ending}line 400001 "), &format!("new{ending}nëw "));
        assert_eq!(proposal.bytes, expected.len() as u64);
        assert_eq!(bench.run(plan).status, ToolStatus::Succeeded);
        assert!(bench.read("f") == expected.as_bytes());
        assert_eq!(fs::metadata(bench.path("f")).unwrap().permissions().mode() & 0o7777, 0o640);
        bench.output("EditFile", json!({"path": "f", "edits": [
            {"oldText": "new\n", "newText": "line 400000 of a file that is long\n"}, {"oldText": "nëw ", "newText": "line 400001 "},
        ]}));
        assert!(bench.read("f") == before.as_bytes());
    }
}

#[test]
fn edits_of_large_files_use_no_fuzzy_matching() {
    let bench = bench();
    bench.write("f", content("\n"));
    let (code, message) = bench.error("EditFile", edit("line 4999", "x"));
    assert_eq!(code, ErrorCode::InvalidRequest);
    assert!(message.contains("more than 1000 times") || message.contains("times, at lines 5000, 49991, "), "{message}");
    assert!(message.contains("\nline 4999 of a file"), "{message}");
    let (_, message) = bench.error("EditFile", edit("line 5  of", "x"));
    assert!(message.contains("searched for exact matches only"), "{message}");
    assert!(bench.error("EditFile", edit("line 5 ", "line 5 ")).1.contains("no change"));
    bench.output("EditFile", json!({"path": "f", "oldText": "line 49999", "newText": "x\ny", "replaceAll": true}));
    assert!(bench.read("f") == content("\n").replace("line 49999", "x\ny").as_bytes());
    let plan = bench.plan("EditFile", edit("line 7 ", "x")).unwrap();
    bench.write("f", content("\r\n"));
    assert_eq!(bench.run(plan).error.unwrap().code, ErrorCode::Conflict);
    assert!(bench.read("f") == content("\r\n").as_bytes());
}

#[test]
fn secrets_in_large_files_stay_redacted() {
    let bench = bench();
    let secret = "ghp_aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW1xY2";
    let text = content("\n").replacen("line 300000 of", &format!("token: {secret} of"), 1);
    bench.write("f", &text);
    assert!(bench.error("EditFile", edit("aB3dE5fG7hI9", "x")).1.contains("not found"));
    let plan = bench.plan("EditFile", edit("line 300001 of", "x of")).unwrap();
    let diff = plan.proposal.clone().unwrap().diff.to_string();
    assert!(diff.contains("-line 300001 of") && !diff.contains(secret), "{diff}");
    bench.run(plan);
    assert!(bench.read("f") == text.replace("line 300001 of", "x of").as_bytes());
}

#[test]
fn a_large_file_is_overwritten_without_a_full_comparison() {
    let bench = bench();
    bench.write("f", content("\r\n"));
    let plan = bench.plan("WriteFile", json!({"path": "f", "content": "a\nb\n"})).unwrap();
    let proposal = plan.proposal.clone().unwrap();
    assert!(proposal.notes[0].contains("too many to compare"), "{:?}", proposal.notes);
    assert!(proposal.diff.text_bytes() < 200);
    bench.run(plan);
    assert_eq!(bench.read("f"), b"a\r\nb\r\n");
}

#[test]
fn files_over_the_size_limit_of_the_policy_are_not_changed() {
    let mut bench = Bench::new();
    bench.settings.max_file_size_bytes = 10 << 20;
    bench.write("f", content("\n"));
    assert_eq!(bench.error("EditFile", edit("line 5 ", "x")).0, ErrorCode::FileTooLarge);
}
