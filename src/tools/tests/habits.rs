//! Tests of calls in the style of other agents.

use super::*;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("a.txt", "alpha\nbeta\ngamma\n");
    bench.write("src/main.rs", "fn main() {\n    let x = 1;\n}\n");
    bench.write("src/Other.md", "LET it be\n");
    bench
}

#[test]
fn read_and_search_calls_of_other_agents_work_as_intended() {
    let bench = bench();
    let file = bench.path("a.txt").display().to_string();
    let root = bench.path("").display().to_string();
    let cases = [
        ("Read", json!({"file_path": file, "offset": 2, "limit": 1}), "beta\n[lines 2 to 2"),
        ("read", json!({"filePath": "a.txt"}), "alpha\nbeta"),
        ("read_file", json!({"absolute_path": file}), "alpha\nbeta"),
        ("view_image", json!({"path": "a.txt"}), "alpha\nbeta"),
        ("view", json!({"path": "a.txt", "view_range": [2, -1]}), "beta\ngamma"),
        ("read_file", json!({"path": "a.txt", "view_range": [1, 1]}), "alpha\n["),
        ("ReadFile", json!({"paths": ["a.txt"]}), "alpha\nbeta"),
        ("ReadFile", json!({"path": ["a.txt"]}), "alpha\nbeta"),
        ("ReadFile", json!({"arguments": {"path": "a.txt"}}), "alpha\nbeta"),
        (
            "Grep",
            json!({"pattern": "let", "path": root, "output_mode": "files_with_matches", "-i": true}),
            "src/Other.md\nsrc/main.rs",
        ),
        ("search_file_content", json!({"pattern": "let", "include": "*.rs"}), "src/main.rs:2:"),
        ("grep_files", json!({"pattern": "let", "include": "*.rs", "limit": 5}), "src/main.rs:2:"),
        ("grep_search", json!({"query": "main(", "isRegexp": false, "includePattern": "**/*.rs"}), "src/main.rs:1:"),
        ("Grep", json!({"regex": "let", "directory": "src", "case_sensitive": false}), "src/Other.md:1:LET"),
        ("grep", json!({"pattern": "LET", "path": "src", "case_sensitive": "true"}), "src/Other.md:1:LET"),
        ("ripgrep", json!({"pattern": "let", "paths": "src", "exclude": "*.md"}), "src/main.rs:2:"),
        ("glob", json!({"pattern": "src/*.RS", "case_sensitive": false, "respect_git_ignore": true}), "src/main.rs"),
        ("find", json!({"pattern": "*.txt"}), "a.txt"),
        ("LS", json!({"path": root, "ignore": ["*.txt"]}), "src/"),
        ("list_directory", json!({"dir_path": "src"}), "Other.md\nmain.rs"),
    ];
    for (tool, arguments, expected) in cases {
        let told = bench.output(tool, arguments.clone());
        assert!(told.starts_with(expected), "{tool} {arguments}:\n{told}");
    }
}

#[test]
fn edit_and_command_calls_of_other_agents_are_planned_as_intended() {
    let bench = bench();
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-beta\n+B\n*** End Patch";
    let cases = [
        ("Edit", json!({"file_path": "a.txt", "old_string": "beta", "new_string": "B", "replace_all": "false"}), "Edit a.txt"),
        ("replace", json!({"file_path": "a.txt", "old_string": "beta", "new_string": "B", "instruction": "why"}), "Edit a.txt"),
        ("apply_patch", json!({"patchText": patch}), "Edit a.txt"),
        ("delete_file", json!({"target_file": "a.txt"}), "Delete a.txt"),
        ("Bash", json!({"command": "echo hi", "description": "says hi", "run_in_background": false}), "Run: echo hi"),
        ("shell", json!({"command": ["bash", "-lc", "echo a | cat"], "workdir": ".", "timeout_ms": 10_000}), "Run: echo a | cat"),
        ("local_shell", json!({"command": ["echo", "a b", "$HOME"]}), "Run: echo 'a b' '$HOME'"),
        ("run_in_terminal", json!({"command": "echo hi", "explanation": "why", "isBackground": false}), "Run: echo hi"),
        ("WebFetch", json!({"url": "https://example.com", "prompt": "what is it about?"}), "GET https://example.com/"),
    ];
    for (tool, arguments, expected) in cases {
        let plan = bench.plan(tool, arguments.clone()).unwrap_or_else(|error| panic!("{tool} {arguments}: {error:?}"));
        let summary = plan.proposal.map(|proposal| proposal.summary).unwrap_or_default();
        assert!(summary.starts_with(expected), "{tool} {arguments}: {summary}");
    }
}

#[test]
fn ambiguous_calls_are_rejected_with_a_hint() {
    let bench = bench();
    let cases = [
        ("ReadFile", json!({"paths": ["a.txt", "src/main.rs"]}), "call once for each"),
        ("ReadFile", json!({"path": "a.txt", "paths": ["src/main.rs"]}), "remove one"),
        ("Grep", json!({"pattern": "let", "ignoreCase": true, "case_sensitive": true}), "remove one"),
        ("shell", json!({"command": ["apply_patch", "*** Begin Patch\n*** End Patch"]}), "call the tool ApplyPatch"),
        ("read_many_files", json!({"paths": ["a.txt"]}), "call ReadFile once for each"),
        ("NotebookEdit", json!({"notebook_path": "a.ipynb"}), "edit that JSON with EditFile"),
        ("web_search", json!({"query": "x"}), "HttpRequest"),
        ("web_fetch", json!({"prompt": "read https://example.com"}), "`url`"),
    ];
    for (tool, arguments, expected) in cases {
        let (_, message) = bench.error(tool, arguments.clone());
        assert!(message.contains(expected), "{tool} {arguments}: {message}");
    }
}
