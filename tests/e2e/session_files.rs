//! Sessions as files: export, import, search, lists, and deletion by age.

use crate::support::{Answer, Project, Server};
use serde_json::{Value, json};
use std::fs;

fn done() -> Answer {
    Answer::text("Finished the work.")
}

fn script() -> Server {
    Server::new([
        Answer::text("I will write the needle.").and_call(
            "call_1",
            "WriteFile",
            json!({"path": "new.txt", "content": "haystack\n"}),
        ),
        done(),
        Answer::text("It went on."),
    ])
}

fn only_session(project: &Project) -> Value {
    let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    listed[0].clone()
}

fn id_of(project: &Project) -> String {
    only_session(project)["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn an_exported_session_continues_in_another_data_directory() {
    let server = script();
    let project = Project::with(&server).allowing_everything();
    project.aye(&["exec", "write it"]).exits(0);
    let id = id_of(&project);
    let file = project.directory("home").join("session.json");
    let path = file.to_str().unwrap().to_owned();
    project.aye(&["sessions", "export", &id, "-o", &path]).exits(0);
    let exported: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&exported["checkpointVersion"], &exported["sessionId"]), (&json!("1.0"), &json!(id)));
    let other = project.directory("elsewhere");
    let project = project.env("AYE_DATA_DIR", other.to_str().unwrap());
    let imported = project.aye(&["sessions", "import", &path]).exits(0);
    assert!(imported.stdout.contains(&format!("imported session {id}")), "{}", imported.stdout);
    project.aye(&["exec", "-c", "go on"]).exits(0);
    let (before, after) = (server.request(1).messages(), server.request(2).messages());
    for words in ["write it", "I will write the needle.", "haystack", "Finished the work."] {
        assert!(after.contains(words), "{words}\n{after}");
    }
    assert!(before.contains("call_1") && after.contains("call_1"));
    assert_eq!(server.request(2).tool_results()[..1], server.request(1).tool_results()[..]);
    // A session with this ID already exists.
    let again = project.aye(&["sessions", "import", &path]).exits(0);
    assert!(again.stderr.contains("already exists; assigned a new ID"), "{}", again.stderr);
    let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
}

#[test]
fn a_minimal_checkpoint_can_be_imported_and_continued() {
    let server = Server::new([Answer::text("It went on.")]);
    let project = Project::with(&server).allowing_everything();
    let checkpoint = json!({
        "checkpointVersion": "1.0", "sessionId": "sess_789", "workspaceId": "ws_456", "sessionStatus": "SESSION_RUNNING",
        "task": {"taskId": "task_001", "prompt": "Refactor the client", "status": "running", "stepCount": 0, "maxSteps": 40},
        "thread": [
            {"messageId": "msg_001", "role": "system", "content": "...", "tokenCount": 150, "timestamp": "2026-02-21T15:00:00Z"},
            {"messageId": "msg_002", "role": "user", "content": "Refactor the client", "tokenCount": 5, "timestamp": "2026-02-21T15:00:00Z"},
        ],
        "sessionTokensUsed": 12540, "policyBundleVersion": "2026-02-21.1", "checkpointedAt": "2026-02-21T15:10:00Z"
    });
    let imported = project.aye_with_input(&["sessions", "import", "-"], &checkpoint.to_string()).exits(0);
    assert!(imported.stderr.contains("is not an aye session ID"), "{}", imported.stderr);
    assert_eq!(only_session(&project)["open"], "interrupted");
    project.aye(&["exec", "-c"]).exits(0);
    assert!(server.request(0).messages().contains("Refactor the client"));
}

#[test]
fn importing_an_invalid_file_reports_the_location_and_changes_nothing() {
    let project = Project::empty();
    let output =
        project.aye_with_input(&["sessions", "import", "-"], "{\"checkpointVersion\": \"1.0\",\n \"thread\": 5}").exits(2);
    for words in ["`stdin`", "line 2, column 12", "`thread`", "expected a sequence"] {
        assert!(output.stderr.contains(words), "{words}\n{}", output.stderr);
    }
    project.aye(&["sessions", "import", "nowhere.json"]).exits(2);
    assert!(project.aye(&["sessions", "list"]).exits(0).stdout.contains("no sessions yet"));
}

#[test]
fn search_covers_all_parts_of_a_session_and_sets_the_exit_code() {
    let server = script();
    let project = Project::with(&server).allowing_everything();
    project.aye(&["exec", "write it"]).exits(0);
    let id = id_of(&project);
    for (text, place) in [("NEEDLE", "answer"), ("haystack", "arguments"), ("write it", "title"), ("/h.yst\\w+/", "arguments")] {
        let found = project.aye(&["sessions", "search", text, "--json"]).exits(0);
        let hits: Vec<Value> = found.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(hits.iter().any(|hit| hit["place"] == place && hit["sessionId"] == *id), "{text}: {hits:?}");
    }
    let shown = project.aye(&["sessions", "search", "needle"]).exits(0).stdout;
    assert!(shown.contains(&id[..8]) && shown.contains("I will write the needle."), "{shown}");
    let nothing = project.aye(&["sessions", "search", "nobody said this"]).exits(1);
    assert!(nothing.stderr.contains("no session of this project"), "{}", nothing.stderr);
    project.aye(&["sessions", "search", "/(/"]).exits(2);
}

#[test]
fn session_lists_and_exports_show_totals() {
    let server = script();
    let project = Project::with(&server).allowing_everything();
    project.aye(&["exec", "write it"]).exits(0);
    let session = only_session(&project);
    assert_eq!((&session["tasks"], &session["steps"]), (&json!(1), &json!(2)));
    assert!(session["bytes"].as_u64() > Some(500) && session["inputTokens"].as_u64() > Some(0), "{session}");
    let id = session["sessionId"].as_str().unwrap();
    assert!(project.aye(&["sessions", "list"]).exits(0).stdout.contains("1 prompt, 2 steps"));
    let events = project.aye(&["sessions", "show", id, "--json"]).exits(0).events();
    assert_eq!(events.only("tool_completed")["status"], "succeeded");
    let page = project.aye(&["sessions", "export", id, "--format", "html"]).exits(0).stdout;
    assert!(
        page.starts_with("<!doctype html>") && page.contains("+haystack") && page.contains("I will write the needle."),
        "{page}"
    );
    let page = project.aye(&["sessions", "export", id, "--format", "md"]).exits(0).stdout;
    assert!(page.contains("```diff") && page.contains("+haystack") && page.contains("Finished the work."), "{page}");
    project.aye(&["sessions", "export", id, "--format", "md", "--with-artifacts"]).exits(2);
}

#[test]
fn prune_lists_sessions_in_a_dry_run_and_then_deletes_them() {
    let server = Server::new([done(), done()]);
    let project = Project::with(&server).allowing_everything();
    project.aye(&["exec", "first"]).exits(0);
    project.aye(&["exec", "second"]).exits(0);
    assert!(project.aye(&["sessions", "prune"]).exits(0).stdout.contains("0 sessions were deleted"));
    let would = project.aye(&["sessions", "prune", "--older-than", "0", "--dry-run", "--json"]).exits(0).json();
    assert_eq!((would["sessions"].as_array().map(Vec::len), &would["dryRun"]), (Some(2), &json!(true)));
    assert!(would["freedBytes"].as_u64() > Some(0), "{would}");
    assert_eq!(project.aye(&["sessions", "list", "--json"]).exits(0).json().as_array().map(Vec::len), Some(2));
    let elsewhere = project.directory("home");
    let elsewhere = elsewhere.to_str().unwrap();
    let here = project.aye(&["-C", elsewhere, "sessions", "prune", "--older-than", "0"]).exits(0).stdout;
    assert!(here.contains("0 sessions were deleted"), "{here}");
    let gone = project.aye(&["-C", elsewhere, "sessions", "prune", "--older-than", "0", "--all"]).exits(0).stdout;
    assert!(gone.contains("2 sessions were deleted"), "{gone}");
    assert_eq!(project.aye(&["sessions", "list", "--json"]).exits(0).json(), json!([]));
}

#[test]
fn retention_budgets_are_enforced_at_startup_once_a_day() {
    let server = Server::new([done(), done(), done()]);
    let project = Project::with(&server).allowing_everything().config("[retention]\nlogs_mb = 1\n");
    project.aye(&["exec", "first"]).exits(0);
    let logs = project.directory("data").join("logs");
    fs::create_dir_all(&logs).unwrap();
    let old = logs.join("aye.log.2020-01-01");
    fs::write(&old, vec![b'x'; 2 << 20]).unwrap();
    fs::write(logs.join("aye.log.2020-01-02"), "x").unwrap();
    project.aye(&["exec", "second"]).exits(0);
    let stamp = fs::File::options().write(true).open(project.directory("data").join("pruned")).unwrap();
    stamp.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(90_000)).unwrap();
    fs::write(&old, vec![b'x'; 2 << 20]).unwrap();
    project.aye(&["exec", "third"]).exits(0);
    assert!(!old.exists(), "a day later it is looked at again");
    let doctor = project.aye(&["doctor", "--json"]);
    let found: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let names: Vec<_> = found["storage"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sessions", "artifacts", "snapshots", "caches", "layers", "logs"]);
    assert!(found["storage"][0]["bytes"].as_u64() > Some(0) && found["storage"][5]["budgetBytes"] == 1 << 20, "{found}");
}

#[test]
fn a_rewound_session_is_imported_in_its_current_state_and_restores_no_files() {
    let write = |content: &str| json!({"path": "new.txt", "content": content});
    let server = Server::new([
        Answer::call("call_1", "WriteFile", write("first\n")),
        Answer::text("The first is done."),
        Answer::call("call_2", "WriteFile", write("second\n")),
        Answer::text("The second is done."),
        Answer::text("It went on."),
    ]);
    let project = Project::with(&server).allowing_everything();
    project.aye(&["exec", "do the first"]).exits(0);
    project.aye(&["exec", "-c", "do the second"]).exits(0);
    project.aye(&["rewind", "--yes"]).exits(0);
    assert_eq!(project.read("new.txt"), "first\n");
    let file = project.directory("home").join("session.json").display().to_string();
    project.aye(&["sessions", "export", &id_of(&project), "-o", &file]).exits(0);
    fs::write(project.path("new.txt"), "by hand\n").unwrap();
    let other = project.directory("elsewhere");
    let project = project.env("AYE_DATA_DIR", other.to_str().unwrap());
    project.aye(&["sessions", "import", &file]).exits(0);
    project.aye(&["exec", "-c", "go on"]).exits(0);
    assert_eq!(project.read("new.txt"), "by hand\n");
    let messages = server.request(4).messages();
    assert!(messages.contains("do the first") && !messages.contains("do the second"), "{messages}");
}

/// Checkpoint as a desktop host writes it during a task.
const CHECKPOINT: &str = r#"{
  "checkpointVersion": "1.0",
  "sessionId": "sess_789",
  "workspaceId": "ws_456",
  "tenantId": "tenant_abc",
  "userId": "user_123",
  "sessionStatus": "SESSION_RUNNING",
  "task": {
    "taskId": "task_001",
    "prompt": "Refactor the API client and add tests",
    "status": "running",
    "stepCount": 3,
    "maxSteps": 40
  },
  "stepCursor": "step_003",
  "thread": [
    {
      "messageId": "msg_001",
      "role": "system",
      "content": "You are an agent.",
      "tokenCount": 150,
      "timestamp": "2026-02-21T15:00:00Z"
    }
  ],
  "sessionTokensUsed": 12540,
  "policyBundleVersion": "2026-02-21.1",
  "checkpointedAt": "2026-02-21T15:10:00Z"
}"#;

#[test]
fn a_checkpoint_of_another_host_keeps_its_fields_and_can_be_continued() {
    let server = Server::new([Answer::text("Refactored.")]);
    let project = Project::with(&server).file("checkpoint.json", CHECKPOINT);
    project.aye(&["sessions", "import", "checkpoint.json"]).exits(0);
    let id = id_of(&project);
    let exported = || project.aye(&["sessions", "export", &id]).exits(0).json();
    let first = exported();
    let given: Value = serde_json::from_str(CHECKPOINT).unwrap();
    for key in ["tenantId", "userId", "policyBundleVersion", "stepCursor", "sessionTokensUsed"] {
        assert_eq!(first[key], given[key], "{key}");
    }
    for key in ["taskId", "prompt", "stepCount", "maxSteps"] {
        assert_eq!(first["task"][key], given["task"][key], "{key}");
    }
    let mut client = crate::support::Rpc::start(&project, &[]);
    let resumed = client.call("ResumeSession", json!({"sessionId": id}));
    assert_eq!((&resumed["stepCursor"], &resumed["task"]["taskId"]), (&json!("step_003"), &json!("task_001")), "{resumed}");
    assert_eq!(client.event("task_completed")["text"], "Refactored.");
    assert!(server.request(0).messages().contains("Refactor the API client"));
    client.call("Shutdown", json!({}));
    client.finish();
    let last = exported();
    assert_eq!((&last["tenantId"], &last["userId"]), (&given["tenantId"], &given["userId"]));
    assert_eq!((&last["task"]["stepCount"], &last["task"]["status"]), (&json!(4), &json!("completed")));
}

#[test]
fn exports_lists_and_clients_report_the_same_number_of_steps() {
    let call = || Answer::call("call_1", "ReadFile", json!({"path": "a.txt"}));
    let server = Server::new([call(), Answer::text("Read.")]);
    let project = Project::with(&server).file("a.txt", "alpha\n");
    let events = project.aye(&["exec", "--json", "read it"]).exits(0).events();
    let steps = events.only("task_completed")["stepCount"].clone();
    assert_eq!(steps, 2);
    let id = id_of(&project);
    let exported = project.aye(&["sessions", "export", &id]).exits(0).json();
    let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    let mut client = crate::support::Rpc::start(&project, &[]);
    let resumed = client.call("ResumeSession", json!({"sessionId": id}));
    let state = client.call("GetSessionState", json!({}));
    assert_eq!([&exported["task"]["stepCount"], &listed[0]["steps"]], [&steps, &steps]);
    assert_eq!([&resumed["task"]["stepCount"], &state["task"]["stepCount"]], [&steps, &steps]);
    assert_eq!(resumed["stepCursor"], exported["stepCursor"]);
    assert_eq!(
        exported["stepCursor"],
        events.0.iter().rev().find(|event| event["eventType"] == "step_completed").unwrap()["stepId"]
    );
}

#[test]
fn a_step_pending_an_approval_is_not_counted() {
    let server = Server::new([Answer::call("call_1", "WriteFile", json!({"path": "a.txt", "content": "x"}))]);
    let project = Project::with(&server);
    let mut client = crate::support::Rpc::start(&project, &[]);
    let session = client.create(&project);
    client.call("StartTask", json!({"prompt": "write it"}));
    client.event("approval_requested");
    let state = client.call("GetSessionState", json!({}));
    let exported = project.aye(&["sessions", "export", session["sessionId"].as_str().unwrap()]).exits(0).json();
    let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    assert_eq!([&state["task"]["stepCount"], &exported["task"]["stepCount"], &listed[0]["steps"]], [&json!(0); 3]);
    assert_eq!(exported["stepCursor"], Value::Null);
}
