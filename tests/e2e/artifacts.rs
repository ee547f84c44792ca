//! Artifacts: output too long for a result, stored by one process and read by another.

use crate::support::Project;
use serde_json::{Value, json};
use std::path::PathBuf;

fn call(project: &Project, tool: &str, arguments: &Value, code: i32) -> Value {
    project.aye(&["tool", "call", tool, "--args", &arguments.to_string(), "--json", "--yes"]).exits(code).json()
}

/// Returns the paths of the artifact content files.
fn contents(project: &Project) -> Vec<PathBuf> {
    let below = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
    below(project.directory("data").join("artifacts/contents")).flat_map(below).collect()
}

#[test]
fn stored_output_is_read_and_searched_by_its_artifact_uri() {
    let project = Project::empty();
    let result = call(&project, "RunCommand", &json!({"command": "seq 100000"}), 0);
    let uri = result["artifactUris"][0].as_str().unwrap();
    let text = result["outputText"].as_str().unwrap();
    assert!(text.starts_with("Exit code: 0\n--- stdout ---\n1\n2\n") && text.contains("\n[... truncated "), "{text}");
    assert!(text.contains(&format!("[the whole stdout is {uri} (")), "{text}");
    let part = call(&project, "ReadFile", &json!({"path": uri, "offset": 70_000, "limit": 1}), 0);
    assert!(part["outputText"].as_str().unwrap().starts_with("70000\n"), "{part}");
    let found = call(&project, "Grep", &json!({"pattern": "^9999.$", "path": uri}), 0);
    assert!(found["outputText"].as_str().unwrap().starts_with(&format!("{uri}:99990:99990\n")), "{found}");
    let again = call(&project, "RunCommand", &json!({"command": "seq 1 100000"}), 0);
    assert_eq!((again["artifactUris"][0].as_str(), contents(&project).len()), (Some(uri), 1), "the same content is kept once");
}

#[test]
fn artifacts_are_readable_only_by_uri_and_the_data_directory_is_not() {
    let project = Project::empty();
    call(&project, "RunCommand", &json!({"command": "seq 10000"}), 0);
    let kept = contents(&project).remove(0);
    for path in [kept.display().to_string(), project.directory("data").join("artifacts").display().to_string()] {
        let refused = call(&project, "Grep", &json!({"pattern": "1", "path": path}), 1);
        assert_eq!(refused["error"]["code"], "POLICY_DENIED", "{refused}");
    }
    let none = call(&project, "ReadFile", &json!({"path": "artifact:000000000000000000000000"}), 1);
    assert_eq!(none["error"]["code"], "FILE_NOT_FOUND", "{none}");
    // A symlink with the name of an artifact is not followed.
    std::os::unix::fs::symlink("/etc/passwd", project.path("artifact:000000000000")).unwrap();
    let link = call(&project, "ReadFile", &json!({"path": "artifact:000000000000"}), 1);
    assert_eq!(link["error"]["code"], "FILE_NOT_FOUND", "{link}");
    std::fs::write(&kept, "else").unwrap();
    let uri = format!(
        "artifact:{}{}",
        kept.parent().unwrap().file_name().unwrap().to_str().unwrap(),
        kept.file_name().unwrap().to_str().unwrap()
    );
    let damaged = call(&project, "ReadFile", &json!({"path": uri}), 1);
    assert!(damaged["error"]["message"].as_str().unwrap().contains("is damaged; run the tool call"), "{damaged}");
}
