//! Tests of `ApplyPatch` on files, with shared cases and additional ones.

use super::*;
use serde::Deserialize;
use std::collections::BTreeMap;

type Files = BTreeMap<String, Vec<u8>>;

/// Returns all files below a directory.
fn files(root: &Path) -> Files {
    fn below(directory: &Path, root: &Path, found: &mut Files) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                below(&path, root, found);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    let mut found = Files::new();
    below(root, root, &mut found);
    found
}

fn workspace(bench: &Bench) -> Files {
    files(&bench.settings.workspace)
}

fn filled(files: &Files) -> Bench {
    let bench = Bench::new();
    for (name, content) in files {
        bench.write(name, content);
    }
    bench
}

fn patch(body: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")})
}

#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    before: BTreeMap<String, String>,
    patch: String,
    intended_after: BTreeMap<String, String>,
    reference: Reference,
}

#[derive(Deserialize)]
struct Reference {
    state: String,
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn every_patch_case_gives_the_intended_result_or_changes_nothing() {
    let cases = fs::read_to_string(shared!("fixtures/apply_patch/cases.jsonl")).unwrap();
    let bytes =
        |files: &BTreeMap<String, String>| files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect();
    let mut table: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in cases.lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let (before, intended): (Files, Files) = (bytes(&case.before), bytes(&case.intended_after));
        let bench = filled(&before);
        let result = bench.call("apply_patch", json!({"input": case.patch}));
        let after = workspace(&bench);
        let error = result.error.map(|error| error.message);
        let outcome = match error {
            None if after == intended => "intended",
            Some(_) if after == before && case.reference.state != "intended" => "refused",
            _ => "wrong",
        };
        if outcome == "wrong" {
            wrong.push(format!("{} ({}): {error:?}", case.id, case.kind));
        }
        *table.entry(case.kind).or_default().entry(outcome).or_default() += 1;
    }
    println!("{table:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}\n{table:#?}");
    let intended: usize = table.values().filter_map(|outcomes| outcomes.get("intended")).sum();
    assert!(intended >= 231, "{intended} cases have the intended result\n{table:#?}");
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn every_patch_scenario_has_the_expected_result() {
    let scenarios = shared!("fixtures/apply_patch/scenarios");
    for line in fs::read_to_string(scenarios.join("index.jsonl")).unwrap().lines() {
        let scenario: Value = serde_json::from_str(line).unwrap();
        let directory = scenarios.join(scenario["name"].as_str().unwrap());
        let before = files(&directory.join("input"));
        let bench = filled(&before);
        let result = bench.call("ApplyPatch", json!({"patch": fs::read_to_string(directory.join("patch.txt")).unwrap()}));
        assert_eq!(result.error.is_none(), scenario["succeeds"], "{scenario}: {result:?}");
        // Completely or not at all, regardless of what the other tool left.
        let expected = if result.error.is_none() { files(&directory.join("expected")) } else { before };
        assert_eq!(workspace(&bench), expected, "{scenario}");
    }
}

#[test]
fn patched_files_keep_their_encoding_and_line_endings() {
    use crate::tools::document::content::Form;
    for form in [Form::Utf8, Form::Utf8Bom, Form::Utf16Le, Form::Utf16Be, Form::Latin1] {
        let bench = Bench::new();
        bench.write("f", form.encode("é one\r\ntwo\nthree\r\n").unwrap());
        bench.output("ApplyPatch", patch("*** Update File: f\n@@\n é one\n-two\n+2\n+zwei\n three\n"));
        assert_eq!(bench.read("f"), form.encode("é one\r\n2\nzwei\nthree\r\n").unwrap(), "{form:?}");
    }
    let bench = Bench::new();
    bench.write("f", b"caf\xE9\n");
    let (_, message) = bench.error("ApplyPatch", patch("*** Update File: f\n@@\n-café\n+\u{4e2d}\n"));
    assert!(message.contains("latin-1, which lacks a character"), "{message}");
}

#[test]
fn final_newlines_are_kept_or_set_by_the_patch() {
    let cases = [
        ("a\nb", "@@\n-a\n+A\n b\n", "A\nb"),
        ("a\nb", "@@\n a\n-b\n+B\n", "a\nB"),
        ("a\nb", "@@\n a\n-b\n+B\n*** End of File\n", "a\nB\n"),
        ("a\nb", "@@\n a\n-b\n+b\n", "a\nb\n"),
        ("a\nb\n", "@@\n a\n-b\n+b\n\\ No newline at end of file\n", "a\nb"),
        ("a\nb", "@@\n a\n-b\n\\ No newline at end of file\n+B\n", "a\nB\n"),
        ("a\nb", "@@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n", "a\nB"),
        ("a\nb", "@@\n b\n+c\n", "a\nb\nc"),
        ("a\nb", "@@\n a\n-b\n", "a\n"),
        ("a\nb\n", "@@\n+c\n", "a\nb\nc\n"),
        ("", "@@\n+c\n", "c\n"),
        ("a\r\nb", "@@\n b\n+c\n", "a\r\nb\r\nc"),
        ("a\r\nb", "@@\n b\n+c\n+d\n", "a\r\nb\r\nc\r\nd"),
        ("a\nb\n", "@@\n-a\n-b\n", ""),
        ("a\n\nb\n", "@@\n b\n+c\n \n", "a\n\nb\nc\n"),
    ];
    for (before, hunk, after) in cases {
        let bench = Bench::new();
        bench.write("f", before);
        bench.output("ApplyPatch", patch(&format!("*** Update File: f\n{hunk}")));
        assert_eq!(String::from_utf8(bench.read("f")).unwrap(), after, "{before:?} {hunk:?}");
    }
}

#[test]
fn an_ambiguous_hunk_is_an_error_that_lists_the_matches() {
    let text = "fn a() {\n    x();\n    done();\n}\n\nfn b() {\n    x();\n    done();\n}\n";
    let bench = Bench::new();
    bench.write("f", text);
    let (code, message) = bench.error("ApplyPatch", patch("*** Update File: f\n@@\n     x();\n-    done();\n+    end();\n"));
    assert_eq!(code, ErrorCode::InvalidRequest);
    assert!(message.contains("line 3 of the patch") && message.contains("2 times, at lines 2, 7"), "{message}");
    assert_eq!(bench.read("f"), text.as_bytes());
    // The header identifies the position, and so does the order of two hunks.
    let one = "*** Update File: f\n@@ fn b() {\n     x();\n-    done();\n+    end();\n";
    bench.output("ApplyPatch", patch(one));
    assert_eq!(bench.read("f"), b"fn a() {\n    x();\n    done();\n}\n\nfn b() {\n    x();\n    end();\n}\n");
    bench.write("f", text);
    let first = "*** Update File: f\n@@ fn a() {\n     x();\n-    done();\n+    end();\n";
    bench.output("ApplyPatch", patch(first));
    assert_eq!(bench.read("f"), b"fn a() {\n    x();\n    end();\n}\n\nfn b() {\n    x();\n    done();\n}\n");
    bench.write("f", text);
    let two = "*** Update File: f\n@@\n     x();\n-    done();\n+    one();\n@@\n     x();\n-    done();\n+    two();\n";
    bench.output("ApplyPatch", patch(two));
    assert_eq!(bench.read("f"), b"fn a() {\n    x();\n    one();\n}\n\nfn b() {\n    x();\n    two();\n}\n");
    // Whichever of two equal lines is removed, the text is the same.
    bench.write("f", "a\na\nb\n");
    bench.output("ApplyPatch", patch("*** Update File: f\n@@\n-a\n"));
    assert_eq!(bench.read("f"), b"a\nb\n");
}

#[test]
fn a_hunk_that_does_not_match_is_an_error_that_names_the_differing_line() {
    let bench = Bench::new();
    bench.write("f", "one\ntwo\nthree\nfour\n");
    let cases = [
        ("@@\n one\n two\n-tree\n+3\n", "line 3 is `three`, not `tree`"),
        ("@@ four\n one\n-two\n+2\n", "only before `four`, at line 1"),
        ("@@ one\n+new\n@@\n-four\n+4\n", "only adds lines"),
        ("@@\n-two\n+2\n@@\n one\n-two\n+zwei\n", "that the hunk at line 3 of the patch also changes"),
        ("@@\n-nothing like it\n", "read the file again"),
        ("@@\n*wrong\n", "line 4 of the patch: `*wrong` does not start with"),
        ("@@\n", "line 3 of the patch: the hunk has no lines"),
        ("", "nothing to update"),
    ];
    for (hunks, part) in cases {
        let (code, message) = bench.error("ApplyPatch", patch(&format!("*** Update File: f\n{hunks}")));
        assert!(code == ErrorCode::InvalidRequest && message.contains(part), "{hunks:?}: {message}");
        assert_eq!(bench.read("f"), b"one\ntwo\nthree\nfour\n");
    }
}

#[test]
fn sections_of_a_patch_apply_to_the_result_of_earlier_sections() {
    let bench = Bench::new();
    bench.write("a", "one\ntwo\n");
    bench.write("old", "same\n");
    bench.write("bin", b"\0\x01\x02");
    fs::set_permissions(bench.path("bin"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let told = bench.output(
        "ApplyPatch",
        patch(
            "*** Update File: a\n@@\n-one\n+1\n*** Update File: a\n*** Move to: sub/b\n@@\n-two\n+2\n*** Add File: new\n+x\n\
             *** Update File: new\n@@\n-x\n+y\n*** Delete File: old\n*** Add File: old\n+again\n*** Update File: bin\n*** Move to: tool\n",
        ),
    );
    let text = |text: &str| text.as_bytes().to_vec();
    let expected = [("sub/b", text("1\n2\n")), ("new", text("y\n")), ("old", text("again\n")), ("tool", b"\0\x01\x02".to_vec())];
    assert_eq!(workspace(&bench), expected.into_iter().map(|(name, content)| (name.to_owned(), content)).collect());
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(bench.path("tool")).unwrap());
    assert_eq!(mode & 0o777, 0o755);
    assert!(told.contains("Moved a to sub/b +2 −2") && told.contains("Created new +1"), "{told}");
}

#[test]
fn a_patch_may_move_a_file_that_the_patch_creates() {
    let bench = Bench::new();
    bench.write("there", "old\n");
    let body = "*** Add File: a\n+1\n*** Update File: a\n*** Move to: d/b\n@@\n-1\n+2\n*** Add File: c\n+3\n*** Update File: c\n*** Move to: there\n";
    bench.output("ApplyPatch", patch(body));
    assert_eq!((bench.read("d/b"), bench.read("there")), (b"2\n".to_vec(), b"3\n".to_vec()));
    assert!(!bench.path("a").exists() && !bench.path("c").exists());
}

#[test]
fn a_patch_plan_lists_every_path_and_shows_one_diff() {
    let bench = Bench::new();
    bench.write("a", "one\n");
    bench.write("gone", "bye\n");
    bench.write("keep", "1\n2\n");
    let body = "*** Update File: a\n*** Move to: b\n@@\n-one\n+1\n*** Delete File: gone\n*** Add File: new\n+n\n*** Update File: keep\n@@\n-2\n+zwei\n";
    let plan = bench.plan("ApplyPatch", patch(body)).unwrap();
    let names: Vec<_> = plan
        .actions
        .iter()
        .map(|action| match action {
            Action::Write { target } => format!("w {}", target.given),
            Action::Delete { target } => format!("d {}", target.given),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["w b", "w a", "d a", "d gone", "w new", "w keep"]);
    let proposal = plan.proposal.unwrap();
    let paths: Vec<_> = proposal.paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(paths, ["a", "b", "gone", "new", "keep"]);
    assert!(proposal.summary.starts_with("Patch 4 files +3 −3: "), "{}", proposal.summary);
    for part in [
        "diff --git a/a b/b\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1 +1 @@\n-one\n+1\n",
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n",
        "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n",
        "diff --git a/keep b/keep\n--- a/keep\n",
    ] {
        assert!(proposal.diff.to_string().contains(part), "{}", proposal.diff);
    }
    assert_eq!(bench.read("a"), b"one\n", "a plan writes nothing");
}

#[test]
fn one_file_changed_after_the_plan_aborts_the_whole_patch() {
    let bench = Bench::new();
    bench.write("a", "one\n");
    bench.write("b", "one\n");
    let body = "*** Add File: d/new\n+n\n*** Update File: a\n@@\n-one\n+1\n*** Update File: b\n@@\n-one\n+1\n";
    let plan = bench.plan("ApplyPatch", patch(body)).unwrap();
    bench.write("b", "theirs\n");
    let before = workspace(&bench);
    let error = bench.run(plan).error.unwrap();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.message.contains("`b` changed") && error.message.contains("No file of the patch was changed"), "{error}");
    assert_eq!(workspace(&bench), before);
    assert!(!bench.path("d").exists());
}

#[test]
fn hunk_errors_do_not_reveal_unreadable_files() {
    let mut bench = Bench::new();
    bench.write("secret", "one\ntwo\n");
    let hidden = bench.path("secret");
    bench.settings.paths.may_read = Arc::new(move |path| path != hidden);
    for hunk in ["@@\n one\n-three\n+3\n", "@@\n-nothing\n+x\n"] {
        let plan = bench.plan("ApplyPatch", patch(&format!("*** Update File: secret\n{hunk}"))).unwrap();
        assert_eq!(plan.actions.len(), 1);
        let message = bench.run(plan).error.unwrap().message;
        assert!(message.contains("you cannot read that file") && !message.contains("two"), "{message}");
    }
}

#[test]
fn markers_in_a_patch_match_the_secrets_of_the_file() {
    const TOKEN: &str = "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";
    const PEM: &str = "-----BEGIN PRIVATE KEY-----\nCn9uq2kE2vmN3KkWPB6sZLneiwvs6bvNEcNTr7qSXyDCFN4IFPYAwF8ylQEFKHIX\nHRl7DzCwOjPvB8Vh+XMdr5pHToAD/y5V4FGMQfoUGh9SfQag9KxLICMpRTpvpTOB\nPZ8VMES6tspQ95fW\n-----END PRIVATE KEY-----\n";
    let bench = Bench::new();
    let before = format!("a\ntoken = {TOKEN}\n{PEM}b\n");
    bench.write("f", &before);
    let shown = bench.output("ReadFile", json!({"path": "f"}));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 4, "{shown}");
    let hunk = format!("*** Update File: f\n@@\n {}\n {}\n-b\n+B\n", lines[1], lines[2]);
    let plan = bench.plan("ApplyPatch", patch(&hunk)).unwrap();
    assert!(!plan.proposal.as_ref().unwrap().diff.to_string().contains("ghp_"));
    assert_eq!(bench.run(plan).error, None);
    assert_eq!(bench.read("f"), before.replace("\nb\n", "\nB\n").as_bytes());
    let (_, message) = bench.error("ApplyPatch", patch(&format!("*** Add File: g\n+{}\n", lines[1])));
    assert!(message.contains("nothing was written"), "{message}");
    let (_, message) = bench.error("ApplyPatch", patch(&format!("*** Delete File: {}\n", lines[1])));
    assert!(message.contains("cannot be part of a path"), "{message}");
}

#[test]
fn patches_keep_links_and_reject_paths_that_are_not_files() {
    let bench = Bench::new();
    bench.write("real", "one\n");
    fs::create_dir(bench.path("dir")).unwrap();
    std::os::unix::fs::symlink("real", bench.path("link")).unwrap();
    bench.output("ApplyPatch", patch("*** Update File: link\n@@\n-one\n+1\n"));
    assert_eq!(bench.read("real"), b"1\n");
    assert!(bench.path("link").is_symlink());
    for body in ["*** Delete File: dir\n", "*** Add File: dir\n+x\n", "*** Update File: real\n*** Move to: dir\n"] {
        let (_, message) = bench.error("ApplyPatch", patch(body));
        assert!(message.contains("is a directory"), "{message}");
    }
    bench.output("ApplyPatch", patch("*** Delete File: link\n"));
    assert!(!bench.path("link").is_symlink() && bench.path("real").exists());
}

#[test]
fn markers_match_secrets_in_a_file_moved_earlier_in_the_patch() {
    const TOKEN: &str = "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";
    let bench = Bench::new();
    bench.write("f", format!("a\ntoken = {TOKEN}\nb\n"));
    let shown = bench.output("ReadFile", json!({"path": "f"}));
    let marked = shown.lines().nth(1).unwrap();
    let moved = "*** Update File: f\n*** Move to: g\n";
    bench.output("ApplyPatch", patch(&format!("{moved}*** Update File: g\n@@\n {marked}\n-b\n+B\n")));
    assert_eq!(bench.read("g"), format!("a\ntoken = {TOKEN}\nB\n").as_bytes());
    assert!(!bench.path("f").exists());
}

#[test]
fn a_patch_cannot_create_a_repository_from_harmless_parts() {
    let bench = Bench::new();
    let parts = ["HEAD", "objects/x", "refs/x", "config"].map(|name| format!("*** Add File: evil/{name}\n+x\n"));
    let (code, message) = bench.error("ApplyPatch", patch(&parts.concat()));
    assert_eq!(code, ErrorCode::PolicyDenied, "{message}");
    assert!(message.contains("with the other changes the file would make its directory a git repository"), "{message}");
    assert!(!bench.path("evil").exists());
    // Two of the three do not make a repository; the third is created elsewhere.
    bench.output("ApplyPatch", patch(&parts[..2].concat()));
    bench.write("r", "x\n");
    let (code, _) = bench.error("ApplyPatch", patch("*** Update File: r\n*** Move to: evil/refs\n"));
    assert_eq!(code, ErrorCode::PolicyDenied);
    bench.output(
        "ApplyPatch",
        patch("*** Add File: docs/HEAD\n+x\n*** Add File: src/objects/x\n+x\n*** Add File: src/refs/x\n+x\n"),
    );
}

#[test]
fn changes_planned_in_parallel_cannot_create_a_repository() {
    let bench = Bench::new();
    let write = |name: &str| bench.plan("WriteFile", json!({"path": format!("evil/{name}"), "content": "x"})).unwrap();
    let plans = [
        write("config"),
        write("HEAD"),
        bench.plan("CreateDirectory", json!({"path": "evil/objects"})).unwrap(),
        bench.plan("AppendFile", json!({"path": "evil/refs/x", "content": "x"})).unwrap(),
    ];
    let ends = plans.map(|plan| bench.run(plan).error.map(|error| error.code));
    assert_eq!(ends, [None, None, None, Some(ErrorCode::PolicyDenied)]);
    assert!(!bench.path("evil/refs").exists());
}
