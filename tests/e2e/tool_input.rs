//! Unusual files and arguments: each call ends promptly with an error and a hint.

use crate::support::{Project, texts};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

fn call(project: &Project, tool: &str, arguments: &Value) -> Value {
    project.aye_with_input(&["tool", "call", tool, "--args", "-", "--json", "--yes"], &arguments.to_string()).json()
}

/// Creates a project with one file of each kind.
fn project() -> Project {
    let long = [vec![b'a'; 20 * 1024 * 1024], b"\n".to_vec()].concat();
    let project = Project::empty()
        .file("text", "one\ntwo\n")
        .file("empty", "")
        .file("directory/file", "")
        .bytes("binary", b"\x7fELF\0\0\x01")
        .bytes("latin", b"gr\xf6\xdfe\n")
        .bytes("utf16", b"\xff\xfeo\0n\0e\0\r\0\n\0")
        .bytes("long", &long);
    fs::File::create(project.path("sparse")).unwrap().set_len(2 << 30).unwrap();
    nix::unistd::mkfifo(&project.path("pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    symlink("loop", project.path("loop")).unwrap();
    project
}

#[test]
fn invalid_calls_fail_with_a_code_and_a_hint() {
    let project = project();
    let edit = |path: &str, old: &str| json!({"path": path, "oldText": old, "newText": "new"});
    let cases = [
        ("ReadFile", json!({"path": "sparse"}), "FILE_TOO_LARGE", "`offset`"),
        ("ReadFile", json!({"path": "directory"}), "INVALID_REQUEST", "ListDirectory"),
        ("ReadFile", json!({"path": "loop"}), "INVALID_REQUEST", "symlinks"),
        ("ReadFile", json!({"path": "txt"}), "FILE_NOT_FOUND", "did you mean `text`?"),
        ("ReadFile", json!({"path": "text/"}), "INVALID_REQUEST", "not a directory"),
        ("ReadFile", json!({"path": "text", "offset": 9}), "INVALID_REQUEST", "which has 2 lines"),
        ("ReadFile", json!({"path": "text", "limit": "many"}), "INVALID_REQUEST", "expected a whole number"),
        ("ReadFile", json!({"path": "pipe"}), "POLICY_DENIED", "pipe"),
        ("ReadFile", json!({"path": "/dev/zero"}), "POLICY_DENIED", "/dev/zero"),
        ("ReadFile", json!({"path": "/proc/self/environ"}), "POLICY_DENIED", "belongs to a process"),
        ("Grep", json!({"pattern": "x", "path": "sparse"}), "INVALID_REQUEST", "RunCommand"),
        ("Grep", json!({"pattern": "a", "path": "long"}), "INVALID_REQUEST", "RunCommand"),
        ("Grep", json!({"pattern": "x", "path": "pipe"}), "POLICY_DENIED", "pipe"),
        ("Grep", json!({"pattern": "("}), "INVALID_REQUEST", "`literal`"),
        ("Glob", json!({"pattern": "["}), "INVALID_REQUEST", "']'"),
        ("ListDirectory", json!({"path": "text"}), "INVALID_REQUEST", "ReadFile"),
        ("EditFile", edit("sparse", "x"), "FILE_TOO_LARGE", "RunCommand"),
        ("EditFile", edit("binary", "ELF"), "INVALID_REQUEST", "RunCommand"),
        ("EditFile", edit("directory", "x"), "INVALID_REQUEST", texts::IS_A_DIRECTORY),
        ("EditFile", edit("pipe", "x"), "INVALID_REQUEST", "FIFO"),
        ("EditFile", edit("empty", "x"), "INVALID_REQUEST", "empty `oldText`"),
        ("EditFile", edit("text", ""), "INVALID_REQUEST", "specify the text to replace"),
        ("EditFile", edit("text", "twoo"), "INVALID_REQUEST", "from line 2"),
        ("EditFile", json!({"path": "latin", "oldText": "gr", "newText": "→"}), "INVALID_REQUEST", "WriteFile"),
        ("WriteFile", json!({"path": "directory", "content": ""}), "INVALID_REQUEST", texts::IS_A_DIRECTORY),
        ("WriteFile", json!({"path": "text/below", "content": ""}), "INVALID_REQUEST", texts::NOT_A_DIRECTORY),
        ("WriteFile", json!({"path": "new", "content": {"a": 1}}), "INVALID_REQUEST", "expected a string"),
        ("WriteFile", json!({"content": ""}), "INVALID_REQUEST", "`path`"),
        ("RunCommand", json!({"command": "true", "cwd": "nowhere"}), "INVALID_REQUEST", "`nowhere` does not exist"),
        ("RunCommand", json!({"command": "true", "cwd": "text"}), "INVALID_REQUEST", texts::NOT_A_DIRECTORY),
        ("RunCommand", json!({"command": "true", "timeout": 60_000}), "INVALID_REQUEST", "1 to 600 seconds"),
        ("RunCommand", json!({"command": ["ls", 1]}), "INVALID_REQUEST", "send one line"),
        ("RunCommand", json!({"command": "trap '' TERM; sleep 60", "timeout": 1}), "TOOL_EXECUTION_TIMEOUT", "`timeout`"),
    ];
    for (tool, arguments, code, part) in cases {
        let error = call(&project, tool, &arguments)["error"].take();
        let message = error["message"].as_str().unwrap_or_default();
        assert!(error["code"] == code && message.contains(part), "{tool} {arguments}: expected {code}, {part}: {error}");
    }
    assert_eq!(project.read("text"), "one\ntwo\n");
}

#[test]
fn edits_preserve_the_encoding_of_a_file() {
    let project = project();
    assert_eq!(
        call(&project, "EditFile", &json!({"path": "utf16", "oldText": "one\n", "newText": "2\n"}))["status"],
        "succeeded"
    );
    assert_eq!(fs::read(project.path("utf16")).unwrap(), b"\xff\xfe2\0\r\0\n\0");
    assert_eq!(call(&project, "EditFile", &json!({"path": "empty", "oldText": "", "newText": "x"}))["status"], "succeeded");
    assert_eq!(project.read("empty"), "x");
}

#[cfg(target_os = "linux")]
#[test]
fn command_output_is_reported_for_every_kind_of_exit() {
    let project = Project::empty();
    let cases = [
        ("printf abc", "Exit code: 0\n--- stdout ---\nabc\n--- stderr ---"),
        ("printf '\\xff\\xfeok'", "Exit code: 0\n--- stdout ---\n\u{FFFD}\u{FFFD}ok\n--- stderr ---"),
        ("cat; exit 7", "Exit code: 7\n--- stdout ---\n--- stderr ---"),
        (
            "echo out; echo err >&2; kill -9 $$",
            "Exit code: 137 (killed by signal 9, SIGKILL)\n--- stdout ---\nout\n--- stderr ---\nerr",
        ),
        ("exec 1>&- 2>&-; exit 3", "Exit code: 3\n--- stdout ---\n--- stderr ---"),
        ("sleep 100 & disown; echo hi", "Exit code: 0\n--- stdout ---\nhi\n--- stderr ---"),
    ];
    for (command, told) in cases {
        assert_eq!(call(&project, "RunCommand", &json!({"command": command}))["outputText"], told, "{command}");
    }
    let flood = call(&project, "RunCommand", &json!({"command": "yes | head -c 200M; echo; echo end"}));
    let text = flood["outputText"].as_str().unwrap();
    assert!(text.len() < 200_000 && text.contains("[... truncated ") && text.contains("\nend\n"), "{} bytes", text.len());
}
