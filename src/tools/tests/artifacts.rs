//! Tests of stored output: it is complete, contains no secrets, and can be read by its URI.

use super::*;
use crate::ports::ARTIFACT_BYTES;
use crate::protocol::{ArtifactKind, ToolResult};
use crate::store::ArtifactStore;

const SECRET: &str = "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";

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.settings.session.artifacts = Some(Arc::new(ArtifactStore::new(&bench.root.join("data"), None)));
    bench
}

fn kept(bench: &Bench, uri: &str) -> String {
    let found = bench.settings.session.artifacts.as_ref().unwrap().find(uri).unwrap();
    fs::read_to_string(found.path).unwrap()
}

fn run(bench: &Bench, line: &str) -> ToolResult {
    bench.call("RunCommand", json!({"command": line}))
}

#[test]
fn long_command_output_is_stored_completely() {
    let bench = bench();
    for (bytes, long) in [(10_239, false), (10_240, false), (10_241, true)] {
        let result = run(&bench, &format!("head -c {bytes} /dev/zero | tr '\\0' x"));
        assert_eq!(result.artifact_uris.len(), usize::from(long), "{bytes}");
        assert!(!result.output_text.contains("artifact:"), "the artifact is complete: {}", result.output_text);
        if long {
            assert_eq!(kept(&bench, &result.artifact_uris[0]), "x".repeat(bytes));
        }
    }
}

#[test]
fn truncated_output_names_its_artifact() {
    let bench = bench();
    for (bytes, cut) in [(102_399, false), (102_400, false), (102_401, true)] {
        let result = run(&bench, &format!("head -c {bytes} /dev/zero | tr '\\0' x"));
        let text = &result.output_text;
        assert!(text.starts_with("Exit code: 0\n--- stdout ---\nxxx"), "{}", &text[..100]);
        assert_eq!(text.contains("[... truncated 1 bytes ...]"), cut, "{bytes}");
        let way = format!("[the whole stdout is {} (100.0 KB); read it with ReadFile", result.artifact_uris[0]);
        assert_eq!(text.contains(&way), cut, "{}", &text[text.len() - 300..]);
    }
    let both = run(&bench, "seq 20000; seq 30000 >&2; exit 3");
    assert!(both.output_text.starts_with("Exit code: 3\n"));
    assert_eq!(both.artifact_uris.len(), 2);
    assert!(kept(&bench, &both.artifact_uris[0]).ends_with("\n20000\n"));
    assert!(kept(&bench, &both.artifact_uris[1]).ends_with("\n30000\n"));
    let short = run(&bench, "seq 20000; sleep 30 & echo done >&2; kill $$");
    assert_eq!(short.artifact_uris.len(), 1, "whatever the outcome");
}

#[test]
fn stored_output_contains_no_secret_even_if_split_across_writes() {
    let bench = bench();
    let (start, end) = SECRET.split_at(15);
    let line = format!("seq 9000; printf 'token {start}'; sleep 0.3; printf '{end}\\n'; seq 20");
    let result = run(&bench, &line);
    let kept = kept(&bench, &result.artifact_uris[0]);
    assert!(
        kept.contains("token [redacted:") && !kept.contains(end) && kept.ends_with("\n20\n"),
        "{}",
        &kept[kept.len() - 150..]
    );
}

#[test]
fn huge_output_is_stored_up_to_the_limit_with_a_note() {
    let bench = bench();
    let bytes = ARTIFACT_BYTES + 1_000_000;
    let result = run(&bench, &format!("yes 0123456789abcde | head -c {bytes}"));
    let text = kept(&bench, &result.artifact_uris[0]);
    assert!(text.len() as u64 <= ARTIFACT_BYTES && text.len() as u64 > ARTIFACT_BYTES - 1000, "{}", text.len());
    assert!(
        text.ends_with(&format!("[... cut here: of {bytes} bytes, at most 64.0 MB are stored ...]\n")),
        "{}",
        &text[text.len() - 200..]
    );
}

#[test]
fn without_storage_results_have_no_artifact() {
    let mut bench = bench();
    fs::write(bench.root.join("data"), "in the way").unwrap();
    bench.settings.max_output_bytes = 20_000;
    let result = run(&bench, "seq 9000");
    assert_eq!((result.status, result.artifact_uris.len()), (ToolStatus::Succeeded, 0));
    assert!(result.output_text.contains("[the whole stdout could not be stored: "), "{}", result.output_text);
}

#[test]
fn the_diff_of_a_long_change_is_stored() {
    let bench = bench();
    let content = |lines: usize| (0..lines).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n") + "\n";
    let small = bench.call("WriteFile", json!({"path": "small", "content": content(100)}));
    assert_eq!((small.output_text.as_str(), small.artifact_uris.len()), ("Wrote 790 bytes to small", 0));
    let large = bench.call("WriteFile", json!({"path": "large", "content": content(2000) + SECRET}));
    assert!(large.output_text.starts_with("Wrote "), "{}", large.output_text);
    let diff = kept(&bench, &large.artifact_uris[0]);
    assert!(diff.starts_with("--- /dev/null\n+++ b/large\n") && diff.contains("+line 1999\n") && !diff.contains(SECRET));
    let gone = bench.call("Delete", json!({"path": "large"}));
    assert!(kept(&bench, &gone.artifact_uris[0]).contains("-line 1999\n"));
    let kinds: Vec<_> = gone
        .artifact_uris
        .iter()
        .chain(&large.artifact_uris)
        .map(|uri| bench.settings.session.artifacts.as_ref().unwrap().find(uri).unwrap().artifact.kind)
        .collect();
    assert_eq!(kinds, [crate::protocol::ArtifactKind::FileDiff; 2]);
}

#[test]
fn an_artifact_is_read_in_ranges_and_searched_by_its_uri() {
    let bench = bench();
    let uri = run(&bench, "seq 100000").artifact_uris.remove(0);
    let text = bench.output("ReadFile", json!({"path": uri, "offset": 50_000, "limit": 2}));
    assert!(text.starts_with("50000\n50001\n["), "{text}");
    let text = bench.output("Grep", json!({"pattern": "^77777$", "path": uri}));
    assert_eq!(text, format!("{uri}:77777:77777"));
    let plan = bench.plan("ReadFile", json!({"path": uri})).unwrap();
    assert_eq!(plan.summary, format!("Read {uri}"));
}

#[test]
fn invalid_artifact_uses_are_errors_with_a_hint() {
    let bench = bench();
    bench.write("artifact:notes", "a file");
    assert_eq!(bench.output("ReadFile", json!({"path": "./artifact:notes"})), "a file");
    for (path, words) in [
        ("artifact:0123456789abcdef01234567", "run that tool call again"),
        ("artifact:notes", "for a file with that name, use `./artifact:notes`"),
        ("artifact:../../etc/passwd", "is not an artifact URI"),
    ] {
        for tool in ["ReadFile", "Grep"] {
            let arguments = if tool == "Grep" { json!({"path": path, "pattern": "x"}) } else { json!({"path": path}) };
            let (code, message) = bench.error(tool, arguments);
            assert_eq!(code, ErrorCode::FileNotFound, "{tool} {path}: {message}");
            assert!(message.contains(words), "{tool} {path}: {message}");
        }
    }
    for (tool, arguments) in [
        ("WriteFile", json!({"path": "artifact:0123456789abcdef01234567", "content": "x"})),
        ("Delete", json!({"path": "artifact:0123456789abcdef01234567"})),
        ("ListDirectory", json!({"path": "artifact:0123456789abcdef01234567"})),
    ] {
        let (code, message) = bench.error(tool, arguments);
        assert_eq!(code, ErrorCode::InvalidRequest, "{tool}: {message}");
        assert!(message.contains("only ReadFile and Grep can read"), "{tool}: {message}");
    }
}

#[test]
fn uploaded_files_are_stored_unchanged_and_listed() {
    let bench = bench();
    bench.write("report.md", "# Done\r\n");
    bench.write("raw.bin", [0_u8, 1, 2, 255]);
    let handed = |arguments: serde_json::Value| {
        let uri = bench.call("UploadArtifact", arguments).artifact_uris.remove(0);
        let found = bench.settings.session.artifacts.as_ref().unwrap().find(&uri).unwrap();
        let content = fs::read(&found.path).unwrap();
        (found.artifact, content)
    };
    let (report, content) = handed(json!({"path": "report.md"}));
    assert_eq!(
        (report.name.as_str(), report.content_type.as_str(), report.kind),
        ("report.md", "text/markdown", ArtifactKind::File)
    );
    assert_eq!(content, b"# Done\r\n");
    let (raw, content) = handed(json!({"path": "raw.bin", "name": "the\nraw one", "contentType": "application/x-raw"}));
    assert_eq!((raw.name.as_str(), raw.content_type.as_str(), content.len()), ("the raw one", "application/x-raw", 4));
    bench.write("log.txt", format!("token {SECRET}\n"));
    let (_, content) = handed(json!({"path": "log.txt"}));
    assert!(!String::from_utf8_lossy(&content).contains(SECRET));
}

#[test]
fn files_that_cannot_be_uploaded_are_errors_with_the_reason() {
    let bench = bench();
    bench.write("a.txt", "a");
    let (code, message) = bench.error("UploadArtifact", json!({"path": "."}));
    assert!(code == ErrorCode::InvalidRequest && message.contains("is a directory"), "{message}");
    let (code, message) = bench.error("UploadArtifact", json!({"path": "a.txt", "contentType": "plain text"}));
    assert!(code == ErrorCode::InvalidRequest && message.contains("text/markdown"), "{message}");
    assert_eq!(bench.error("UploadArtifact", json!({"path": "none"})).0, ErrorCode::FileNotFound);
    fs::File::create(bench.path("huge")).unwrap().set_len(ARTIFACT_BYTES + 1).unwrap();
    assert_eq!(bench.error("UploadArtifact", json!({"path": "huge"})).0, ErrorCode::FileTooLarge);
    let alone = Bench::new();
    alone.write("a.txt", "a");
    let (code, message) = alone.error("UploadArtifact", json!({"path": "a.txt"}));
    assert!(code == ErrorCode::ToolExecutionFailed && message.contains("no artifact store"), "{message}");
}
