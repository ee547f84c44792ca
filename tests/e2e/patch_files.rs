//! `aye exec --patch` and `aye apply`: a task runs in a layer, and its changes become a file.

use crate::support::{Answer, Gate, Project, Server, TIMEOUT, texts, wait_until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Returns a policy with these lines for writes and deletions.
fn policy(lines: &str) -> String {
    let shell = "[capabilities.\"Shell.Exec\"]\nrequires_approval = false\nsandbox = \"off\"\n";
    format!(
        "schema_version = 1\n[capabilities.\"File.Read\"]\n[capabilities.\"File.Write\"]\n{lines}\n[capabilities.\"File.Delete\"]\n{lines}\n{shell}"
    )
}

const OPEN: &str = "requires_approval = false";
const ASKING: &str = "requires_approval = true";

fn write(id: &str, path: &str, content: &str) -> Answer {
    Answer::call(id, "WriteFile", json!({"path": path, "content": content}))
}

/// Runs a task that changes files with tools and a command. Returns the project and its server.
fn changed_in_a_layer(options: &[&str]) -> (Project, Server) {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "alpha", "newText": "omega"}]});
    let command =
        "cat a.txt new.txt && printf '\\0bin' > b.bin && rm gone.txt && chmod +x run.sh && mkdir -p target && echo x > target/x";
    let calls = Answer::call("c1", "EditFile", edit).and_call("c2", "WriteFile", json!({"path": "new.txt", "content": "new\n"}));
    let server = Server::new([
        calls,
        Answer::call("c3", "RunCommand", json!({"command": command})),
        Answer::call("c4", "ReadFile", json!({"path": "a.txt"})),
        Answer::text("Done."),
    ]);
    let project = Project::outside_tmp_with(&server)
        .policy(&policy(OPEN))
        .file("a.txt", "alpha\n")
        .file("gone.txt", "gone\n")
        .file("run.sh", "#!/bin/sh\n")
        .file(".gitignore", "target/\n");
    let arguments: Vec<&str> = ["exec", "--patch", "out.patch"].iter().chain(options).copied().chain(["change things"]).collect();
    let output = project.aye(&arguments).exits(0);
    output.says(&["the workspace is unchanged", "aye apply", "target/x (git ignores the file)"]);
    (project, server)
}

fn header(project: &Project, path: &str) -> Value {
    let text = project.read(path);
    let rest = text.strip_prefix("aye patch 1\n").unwrap();
    serde_json::Deserializer::from_str(rest).into_iter().next().unwrap().unwrap()
}

fn is_executable(path: &Path) -> bool {
    path.metadata().unwrap().permissions().mode() & 0o111 != 0
}

#[test]
fn a_task_with_a_patch_file_sees_its_changes_and_leaves_the_workspace_unchanged() {
    let (project, server) = changed_in_a_layer(&[]);
    assert_eq!((project.read("a.txt").as_str(), project.read("gone.txt").as_str()), ("alpha\n", "gone\n"));
    assert!(!project.exists("new.txt") && !project.exists("b.bin") && !project.exists("target"));
    assert!(!is_executable(&project.path("run.sh")));
    let results = server.request(2).tool_results();
    assert!(results.iter().any(|(_, text)| text.contains("omega\nnew")), "the command saw the edits: {results:?}");
    assert!(server.request(3).messages().contains("omega"));
    let header = header(&project, "out.patch");
    let files: Vec<&str> = header["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(files, ["a.txt", "b.bin", "gone.txt", "new.txt", "run.sh"]);
    assert_eq!(header["leftOut"], json!([{"path": "target/x", "why": "git ignores the file"}]));
    let tools: Vec<&Value> = header["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["tool"]).collect();
    assert_eq!(tools, ["EditFile", "WriteFile", "RunCommand", "ReadFile"]);
    // No data of the session remains.
    assert_eq!(project.aye(&["sessions", "list", "--json"]).exits(0).json(), json!([]));
    let left = std::fs::read_dir(project.directory("data").join("ephemeral")).unwrap().flatten();
    assert_eq!(left.filter(|entry| entry.path().is_dir()).count(), 0);
}

#[test]
fn a_patch_file_is_applied_as_a_session_and_can_be_rewound() {
    let (project, _server) = changed_in_a_layer(&[]);
    let check = project.aye(&["apply", "--check", "out.patch"]).exits(0);
    assert!(check.stdout.contains("allow a.txt"), "{}", check.stdout);
    assert_eq!(project.read("a.txt"), "alpha\n");
    let output = project.aye(&["apply", "out.patch"]).exits(0);
    assert!(output.stdout.contains("Applied a patch to 5 files"), "{}", output.stdout);
    assert_eq!((project.read("a.txt").as_str(), project.read("new.txt").as_str()), ("omega\n", "new\n"));
    assert!(!project.exists("gone.txt") && is_executable(&project.path("run.sh")));
    assert_eq!(std::fs::read(project.path("b.bin")).unwrap(), b"\0bin");
    project.aye(&["apply", "out.patch"]).exits(1).says(&["changed since the patch file was written"]);
    crate::tasks::undo(&project, &output.stderr);
    assert_eq!((project.read("a.txt").as_str(), project.read("gone.txt").as_str()), ("alpha\n", "gone\n"));
    assert!(!project.exists("new.txt") && !is_executable(&project.path("run.sh")));
}

#[test]
fn a_changed_file_is_reported_and_no_change_is_applied() {
    let (project, _server) = changed_in_a_layer(&[]);
    std::fs::write(project.path("a.txt"), "mine\n").unwrap();
    project.aye(&["apply", "--yes", "out.patch"]).exits(1).says(&["`a.txt` changed since", "hint:"]);
    assert_eq!(project.read("a.txt"), "mine\n");
    assert!(!project.exists("new.txt") && project.exists("gone.txt"));
}

#[test]
fn the_current_policy_decides_regardless_of_the_recorded_verdicts() {
    let (project, _server) = changed_in_a_layer(&[]);
    // Under a policy that does not allow everything, the writes need approval.
    let project = project.policy(&policy(ASKING));
    let asked = project.aye(&["apply", "out.patch"]).exits(3);
    asked.says(&["the policy has changed", "approval required", "--yes"]);
    assert_eq!(project.read("a.txt"), "alpha\n");
    let project = project.policy(&policy("requires_approval = false\nblocked_paths = [\"a.txt\"]"));
    let denied = project.aye(&["apply", "--yes", "out.patch"]).exits(3);
    assert!(denied.stdout.contains("deny  a.txt"), "{}", denied.stdout);
    assert!(!project.exists("new.txt"));
    let project = project.policy(&policy(ASKING));
    project.aye(&["apply", "--yes", "out.patch"]).exits(0);
    assert_eq!(project.read("a.txt"), "omega\n");
}

#[test]
fn a_symlink_cannot_redirect_a_change() {
    let server = Server::new([write("c1", "sub/new.txt", "new\n"), Answer::text("Done.")]);
    let project = Project::outside_tmp_with(&server).allowing_everything();
    project.aye(&["exec", "--patch", "out.patch", "write"]).exits(0);
    std::fs::create_dir(project.path("other")).unwrap();
    std::os::unix::fs::symlink("other", project.path("sub")).unwrap();
    project.aye(&["apply", "--yes", "out.patch"]).exits(1).says(&["symlink"]);
    assert!(!project.exists("other/new.txt"));
}

#[test]
fn an_invalid_patch_file_is_an_error_and_changes_nothing() {
    let project = Project::empty().file("x.patch", "diff --git a/x b/x\n");
    project.aye(&["apply", "x.patch"]).exits(2).says(&["is not a valid patch file", "first line"]);
    project.aye(&["apply", "missing.patch"]).exits(2).says(&["cannot read the patch file"]);
    project.aye(&["exec", "--patch", "nowhere/x.patch", "hi"]).exits(2).says(&["cannot write the patch file"]);
    for option in ["-c", "--resume", "--fork"] {
        project.aye(&["exec", "--patch", "x.patch", option, "hi"]).exits(2).says(&["`--patch` cannot be combined with"]);
    }
    project.aye(&["exec", "--patch", "x.patch", "--add-dir", "/usr", "hi"]).exits(2).says(&["--add-dir"]);
}

#[test]
fn denied_changes_are_not_in_the_patch_file() {
    let server = Server::new([write("c1", "new.txt", "new\n"), Answer::text("Done.")]);
    let project = Project::outside_tmp_with(&server);
    let output = project.aye(&["exec", "--patch", "out.patch", "write"]).exits(3);
    assert!(output.stderr.contains(texts::NO_ONE_TO_ASK) || output.stderr.contains("denied"), "{}", output.stderr);
    let header = header(&project, "out.patch");
    assert_eq!((&header["files"], &header["verdicts"][0]["verdict"]), (&json!([]), &json!("deny")));
    project.aye(&["apply", "out.patch"]).exits(0);
}

#[test]
fn a_killed_task_leaves_the_workspace_unchanged() {
    let gate = Gate::default();
    let server = Server::new([write("c1", "a.txt", "changed\n"), Answer::text("I wait").and_wait(&gate)]);
    let project = Project::outside_tmp_with(&server).allowing_everything().file("a.txt", "alpha\n");
    let running = project.start(&["exec", "--patch", "out.patch", "write"]);
    server.request(1);
    let data = project.directory("data").join("ephemeral");
    let runs = || std::fs::read_dir(&data).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()).count();
    assert!(wait_until(TIMEOUT, || runs() == 1));
    running.kill();
    gate.open();
    assert!(!project.exists("out.patch"));
    project.aye(&["sessions", "list"]).exits(0);
    assert_eq!((runs(), project.read("a.txt").as_str()), (0, "alpha\n"));
}
