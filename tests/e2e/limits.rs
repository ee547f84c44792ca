//! Limits and aliases of tools: values just below, at and above each limit.

use crate::support::Project;
use serde_json::{Value, json};

/// Calls a tool. Returns its error code, or `ok`, and the result.
fn outcome(project: &Project, tool: &str, arguments: &Value, flags: &[&str]) -> (String, Value) {
    let arguments = arguments.to_string();
    let mut words = vec!["tool", "call", tool, "--args", &arguments, "--json"];
    words.extend(flags);
    let result = project.aye(&words).json();
    let code = result["error"]["code"].as_str().unwrap_or("ok").to_owned();
    (code, result)
}

#[test]
fn values_at_each_limit_are_accepted_and_values_beyond_are_rejected() {
    let project = Project::empty().file("f", "one\ntwo\n").file("d/f", "x").file("e/f", "x");
    let name = |bytes: usize| "n".repeat(bytes);
    let cases = [
        ("RunCommand", json!({"command": "true", "timeout": 0}), "INVALID_REQUEST"),
        ("RunCommand", json!({"command": "true", "timeout": 1}), "ok"),
        ("RunCommand", json!({"command": "true", "timeout": 600}), "ok"),
        ("RunCommand", json!({"command": "true", "timeout": 601}), "INVALID_REQUEST"),
        ("CliRun", json!({"command": "true", "timeout": 601}), "INVALID_REQUEST"),
        ("CliRun", json!({"command": "true", "captureStderr": false}), "ok"),
        ("shell", json!({"command": "true", "timeout": 0}), "INVALID_REQUEST"),
        ("shell", json!({"command": "true", "working_directory": "d"}), "ok"),
        ("shell", json!({"command": "true", "working_directory": "f"}), "INVALID_REQUEST"),
        ("RunCommand", json!({"command": ""}), "INVALID_REQUEST"),
        ("RunCommand", json!({"command": "a\u{0}b"}), "INVALID_REQUEST"),
        ("WriteFile", json!({"path": name(255), "content": "x"}), "ok"),
        ("WriteFile", json!({"path": name(256), "content": "x"}), "INVALID_REQUEST"),
        ("WriteFile", json!({"path": "no/f", "content": "x", "createDirectories": false}), "FILE_NOT_FOUND"),
        ("WriteFile", json!({"path": "yes/f", "content": "x", "createDirectories": true}), "ok"),
        ("Stat", json!({"path": "f"}), "ok"),
        ("stat", json!({"path": "none"}), "FILE_NOT_FOUND"),
        ("hash_file", json!({"path": "f", "algorithm": "md5"}), "ok"),
        ("HashFile", json!({"path": "d"}), "INVALID_REQUEST"),
        ("disk_usage", json!({"depth": 20}), "ok"),
        ("disk_usage", json!({"depth": 21}), "INVALID_REQUEST"),
        ("TextInspect", json!({"FilePath": "f", "Mode": "search", "Query": "t.o", "Regex": true, "Context": 20}), "ok"),
        (
            "TextInspect",
            json!({"FilePath": "f", "Mode": "search", "Query": "t.o", "Regex": true, "Context": 21}),
            "INVALID_REQUEST",
        ),
        ("TextPatch", json!({"path": "f", "operation": "replace", "startLine": 2, "content": "2"}), "ok"),
        ("TextPatch", json!({"path": "f", "operation": "replace", "startLine": 3, "content": "3"}), "INVALID_REQUEST"),
        ("TextPatch", json!({"path": "f", "operation": "insertBefore", "startLine": 3, "content": "3"}), "ok"),
        ("DeleteFile", json!({"path": "d"}), "INVALID_REQUEST"),
        ("DeleteFile", json!({"path": "d/f"}), "ok"),
        ("Delete", json!({"path": "e"}), "INVALID_REQUEST"),
        ("Delete", json!({"path": "e", "recursive": true}), "ok"),
        ("CreateDirectory", json!({"path": "d"}), "ok"),
        ("CreateDirectory", json!({"path": "f"}), "INVALID_REQUEST"),
        ("Move", json!({"source": "f", "destination": "d"}), "INVALID_REQUEST"),
        ("Copy", json!({"source": "f", "destination": "d/g"}), "ok"),
        ("Copy", json!({"source": "f", "destination": "d/g"}), "INVALID_REQUEST"),
    ];
    for (tool, arguments, expected) in cases {
        let (code, result) = outcome(&project, tool, &arguments, &["--yes"]);
        assert_eq!(code, expected, "{tool} {arguments}: {result}");
    }
    assert_eq!(project.read("f"), "one\n2\n3\n");
}

#[test]
fn text_tools_obey_their_configured_limits() {
    let settings =
        "[tools.text]\nallowed_extensions = ['.md', 'TXT']\nmax_file_size = '1KB'\nallow_create = false\nallow_delete = false\n";
    let large = "x".repeat(1025);
    let project = Project::empty().config(settings).file("a.md", "needle\n").file("b.rs", "needle\n").file("large.txt", &large);
    for (tool, arguments, expected) in [
        ("TextRead", json!({"path": "a.md"}), "ok"),
        ("TextRead", json!({"path": "b.rs"}), "PERMISSION_DENIED"),
        ("ReadFile", json!({"path": "b.rs"}), "ok"),
        ("TextInspect", json!({"path": "large.txt"}), "FILE_TOO_LARGE"),
        ("TextCreate", json!({"path": "new.md", "content": "x"}), "PERMISSION_DENIED"),
        ("TextDelete", json!({"path": "a.md"}), "PERMISSION_DENIED"),
    ] {
        let (code, result) = outcome(&project, tool, &arguments, &["--yes"]);
        assert_eq!(code, expected, "{tool} {arguments}: {result}");
    }
    let (_, found) = outcome(&project, "TextSearch", &json!({"pattern": "needle"}), &[]);
    let text = found["outputText"].as_str().unwrap();
    assert!(text.contains("a.md") && !text.contains("b.rs"), "{text}");
    let schema = project.aye(&["config", "keys"]).stdout;
    assert!(
        schema.contains("tools.text.max_file_size\n    a number of bytes, or a string such as \"10MB\"; default \"10MB\""),
        "{schema}"
    );
    let off = Project::empty().config("[tools.text]\nenabled = false\n").file("a.md", "x");
    assert!(!off.aye(&["tool", "list"]).exits(0).stdout.contains("TextInspect"));
    assert_eq!(outcome(&off, "TextRead", &json!({"path": "a.md"}), &[]).0, "PERMISSION_DENIED");
}

#[test]
fn a_text_patch_shows_its_diff_and_needs_approval() {
    let project = Project::empty().bytes("a.md", b"# A\r\n\r\nold\r\n\r\n# B\r\nx");
    let patch = json!({"path": "a.md", "operation": "replace", "section": "A", "content": "new"}).to_string();
    let proposal = project.aye(&["tool", "call", "TextPatch", "--args", &patch, "--plan"]).exits(0).json();
    assert!(proposal["diff"].as_str().unwrap().contains("-old\n+new"), "{proposal}");
    let file = &proposal["files"][0];
    assert_eq!((&file["name"], &file["kind"]), (&json!("a.md"), &json!("modified")), "{proposal}");
    let changed = json!([{"side": "removed", "text": "old"}, {"side": "added", "text": "new"}]);
    assert_eq!(json!(file["hunks"][0]["lines"].as_array().unwrap()[2..4]), changed, "{proposal}");
    assert_eq!(project.aye(&["tool", "call", "TextPatch", "--args", &patch, "--json"]).exits(1).json()["status"], "denied");
    project.aye(&["tool", "call", "TextPatch", "--args", &patch, "--json", "--yes"]).exits(0);
    assert_eq!(project.read("a.md"), "# A\r\n\r\nnew\r\n\r\n# B\r\nx");
}

#[test]
fn list_files_accepts_a_glob_pattern_as_its_path() {
    let project = Project::empty().file("src/a.py", "").file("src/b.ts", "").file("src/deep/c.ts", "").file("d.ts", "");
    for (path, listed) in [
        ("src/*.py", "a.py"),
        ("**/*.ts", "d.ts\nsrc/b.ts\nsrc/deep/c.ts"),
        ("src/**/*.ts", "b.ts\ndeep/c.ts"),
        ("src/?.ts", "b.ts"),
        ("src", "a.py\nb.ts\ndeep/"),
    ] {
        let (code, result) = outcome(&project, "list_files", &json!({"path": path}), &[]);
        assert_eq!((code.as_str(), result["outputText"].as_str()), ("ok", Some(listed)), "{path}");
    }
}
