//! Tests of aliases taken from other agents' documentation, which have arguments, defaults and limits of their own.

use super::*;
use crate::protocol::TextTools;

fn timeout(tool: &str, arguments: Value) -> u64 {
    Bench::new().plan(tool, arguments).unwrap().timeout_seconds
}

#[test]
fn each_command_tool_name_has_its_own_default_timeout() {
    assert_eq!(timeout("RunCommand", json!({"command": "true"})), 300);
    assert_eq!(timeout("bash", json!({"command": "true"})), 300);
    assert_eq!(timeout("CliRun", json!({"command": "true"})), 30);
    assert_eq!(timeout("shell", json!({"command": "true"})), 60);
    assert_eq!(timeout("CliRun", json!({"Command": "true", "Timeout": 7})), 7);
    assert_eq!(timeout("CliRun", json!({"command": "true", "background": true})), 0);
}

#[test]
fn timeouts_have_a_minimum_and_a_maximum() {
    let bench = Bench::new();
    for tool in ["RunCommand", "CliRun", "shell", "run_shell_command"] {
        for (timeout, taken) in [(0, false), (1, true), (2, true), (599, true), (600, true), (601, false)] {
            let planned = bench.plan(tool, json!({"command": "true", "timeout": timeout}));
            assert_eq!(planned.is_ok(), taken, "{tool} {timeout}");
            if let Err(error) = planned {
                assert_eq!(error.code, ErrorCode::InvalidRequest);
                assert!(error.message.contains("1 to 600 seconds"), "{error}");
            }
        }
        for command in ["", " \n", "a\0b"] {
            let error = bench.plan(tool, json!({"command": command})).map(|_| ()).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidRequest, "{tool} {command:?}");
        }
    }
}

#[test]
fn working_directory_arguments_have_the_documented_names() {
    let bench = Bench::new();
    fs::create_dir(bench.path("sub")).unwrap();
    for (tool, name) in [("RunCommand", "cwd"), ("CliRun", "workingDirectory"), ("CliRun", "WorkingDirectory"), ("CliRun", "cwd")]
    {
        assert!(bench.output(tool, json!({"command": "pwd", name: "sub"})).contains("/ws/sub\n"), "{tool} {name}");
    }
    for name in ["working_directory", "cwd"] {
        assert!(bench.output("shell", json!({"command": "pwd", name: "sub"})).contains("/ws/sub\n"));
        assert!(bench.output("shell", json!({"command": "pwd", name: "."})).contains("/ws\n"));
    }
}

#[test]
fn stderr_can_be_omitted_and_the_omission_is_reported() {
    let bench = Bench::new();
    let line = "echo out; echo '--- stderr ---'; echo wrong >&2";
    let whole = bench.output("CliRun", json!({"command": line}));
    assert!(whole.ends_with("--- stderr ---\nwrong"), "{whole}");
    let without = bench.output("CliRun", json!({"command": line, "captureStderr": false}));
    assert_eq!(
        without,
        "Exit code: 0\n--- stdout ---\nout\n--- stderr ---\n--- stderr ---\n[6 bytes omitted: captureStderr is false]"
    );
    let nothing = bench.output("CliRun", json!({"command": "echo out", "capture_stderr": "false"}));
    assert_eq!(nothing, "Exit code: 0\n--- stdout ---\nout\n--- stderr ---");
    let failed = bench.call("CliRun", json!({"command": "echo wrong >&2; sleep 9", "timeout": 1, "captureStderr": false}));
    assert!(failed.output_text.contains("6 bytes omitted") && !failed.output_text.contains("wrong"), "{failed:?}");
}

#[test]
fn delete_file_never_deletes_a_directory() {
    let bench = Bench::new();
    bench.write("f", "x");
    bench.write("d/f", "x");
    std::os::unix::fs::symlink("d", bench.path("link")).unwrap();
    bench.output("DeleteFile", json!({"path": "f"}));
    bench.output("DeleteFile", json!({"path": "link"}));
    assert!(!bench.path("f").exists() && bench.path("link").symlink_metadata().is_err());
    for path in ["d", "d/", "."] {
        let (code, message) = bench.error("DeleteFile", json!({"path": path}));
        assert_eq!(code, ErrorCode::InvalidRequest);
        assert!(message.contains("use Delete with `recursive`"), "{message}");
    }
    let (_, message) = bench.error("DeleteFile", json!({"path": "d", "recursive": true}));
    assert!(message.contains("`recursive` is not an argument"), "{message}");
    assert!(bench.path("d/f").exists());
    assert_eq!(bench.error("DeleteFile", json!({"path": "none"})).0, ErrorCode::FileNotFound);
}

fn kept_to(text: TextTools) -> Bench {
    let bench = Bench::new();
    bench.write("a.md", "# A\nneedle\n");
    bench.write("b.rs", "needle\n");
    bench.write("c.MD", "needle\n");
    bench.write("dir.rs/d.md", "needle\n");
    bench.write("large.md", format!("needle\n{}", "x".repeat(100)));
    let settings = ToolSettings { text, ..bench.settings.clone() };
    Bench { settings, ..bench }
}

#[test]
fn text_tools_respect_the_allowed_extensions() {
    let bench = kept_to(TextTools { allowed_extensions: vec!["md".into()], ..TextTools::default() });
    for (tool, arguments) in [
        ("TextInspect", json!({"path": "b.rs"})),
        ("TextPatch", json!({"path": "b.rs", "operation": "delete", "startLine": 1})),
        ("text_patch", json!({"path": "b.rs", "operation": "delete", "startLine": 1})),
        ("TextRead", json!({"path": "b.rs"})),
        ("textread", json!({"path": "b.rs"})),
        ("TextCreate", json!({"path": "new.rs", "content": "x"})),
        ("TextSearch", json!({"pattern": "needle", "path": "b.rs"})),
        ("TextDelete", json!({"path": "b.rs"})),
    ] {
        let (code, message) = bench.error(tool, arguments);
        assert_eq!(code, ErrorCode::PermissionDenied, "{tool}");
        assert!(message.contains("`tools.text.allowed_extensions` (`.md`)"), "{message}");
    }
    assert!(bench.output("TextRead", json!({"path": "c.MD"})).contains("needle"));
    let found = bench.output("TextSearch", json!({"pattern": "needle"}));
    assert!(found.contains("a.md") && found.contains("dir.rs/d.md") && !found.contains("b.rs"), "{found}");
    // Under their own names, the tools are only restricted by the policy.
    assert!(bench.output("Grep", json!({"pattern": "needle"})).contains("b.rs"));
    assert!(bench.output("ReadFile", json!({"path": "b.rs"})).contains("needle"));
    bench.output("WriteFile", json!({"path": "new.rs", "content": "x"}));
    bench.output("DeleteFile", json!({"path": "b.rs"}));
}

#[test]
fn text_tools_respect_the_size_limit() {
    for (limit, taken) in [(106, false), (107, true), (108, true)] {
        let bench = kept_to(TextTools { max_file_size: Some(limit), ..TextTools::default() });
        for (tool, arguments) in [
            ("TextRead", json!({"path": "large.md"})),
            ("TextInspect", json!({"path": "large.md"})),
            ("TextCreate", json!({"path": "n.md", "content": "y".repeat(107)})),
        ] {
            let result = bench.call(tool, arguments);
            assert_eq!(result.status == ToolStatus::Succeeded, taken, "{tool} {limit}: {result:?}");
            if let Some(error) = result.error {
                assert_eq!(error.code, ErrorCode::FileTooLarge);
                assert!(error.message.contains("`tools.text.max_file_size` is 106"), "{error}");
            }
        }
        assert_eq!(bench.output("TextSearch", json!({"pattern": "needle"})).contains("large.md"), taken);
    }
}

#[test]
fn text_tools_create_and_delete_unless_disabled() {
    let bench = kept_to(TextTools { allow_create: false, allow_delete: false, ..TextTools::default() });
    let (_, message) = bench.error("TextCreate", json!({"path": "new.md", "content": "x"}));
    assert!(message.contains("`tools.text.allow_create` is false"), "{message}");
    let (_, message) = bench.error("TextDelete", json!({"path": "a.md"}));
    assert!(message.contains("`tools.text.allow_delete` is false"), "{message}");
    bench.output("TextCreate", json!({"path": "a.md", "content": "x"}));
    bench.output("DeleteFile", json!({"path": "a.md"}));
    bench.output("WriteFile", json!({"path": "new.md", "content": "x"}));
}

#[test]
fn disabled_text_tools_are_not_offered() {
    let bench = kept_to(TextTools { enabled: false, ..TextTools::default() });
    let names: Vec<_> = bench.router().definitions().into_iter().map(|tool| tool.tool_name).collect();
    assert!(!names.iter().any(|name| name.starts_with("Text")), "{names:?}");
    for tool in ["TextInspect", "TextRead", "TextDelete"] {
        let (code, message) = bench.error(tool, json!({"path": "a.md"}));
        assert_eq!(code, ErrorCode::PermissionDenied);
        assert!(message.contains("use ReadFile"), "{message}");
    }
}
