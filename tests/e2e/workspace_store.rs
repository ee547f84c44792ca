//! Sessions in an object store: uploads after tasks, and sessions that continue on another machine.

use crate::support::{Answer, Fault, ObjectServer, Project, Server, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::fs;

/// Service account of an emulator, which needs no signatures.
const GOOGLE_KEY: &str =
    r#"{"private_key": "", "private_key_id": "", "client_email": "", "gcs_base_url": "", "disable_oauth": true}"#;
/// Number of lines of an output that is long enough for an artifact.
const LINES: u32 = 20_000;

fn script() -> Server {
    let command = format!("seq 1 {LINES}");
    Server::new([
        Answer::text("I will count.").and_call("call_1", "RunCommand", json!({"command": command})),
        Answer::text("Counted."),
        Answer::text("It went on."),
        Answer::text("And on."),
        Answer::text("And on again."),
    ])
}

/// Creates a machine with its own data directory and workspace, and with this configuration.
fn machine(server: &Server, config: &str) -> Project {
    let project = Project::with(server).env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret-of-the-store");
    let project = project.env("GOOGLE_SERVICE_ACCOUNT_KEY", GOOGLE_KEY);
    let variables = ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"];
    let set = variables.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)));
    let project = set.fold(project, |project, (name, value)| project.env(name, &value));
    project.config(config).allowing_everything()
}

fn id_of(project: &Project) -> String {
    let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    listed[0]["sessionId"].as_str().unwrap_or_else(|| panic!("no session in {listed}")).to_owned()
}

fn records(project: &Project, id: &str) -> Vec<Value> {
    let exported: Value = serde_json::from_str(&project.aye(&["sessions", "export", id]).exits(0).stdout).unwrap();
    exported["aye"]["records"].as_array().unwrap().clone()
}

fn head_of(store: &ObjectServer, id: &str) -> Value {
    serde_json::from_slice(&store.read(&format!("aye/heads/{id}.json")).unwrap()).unwrap()
}

fn change_head(store: &ObjectServer, id: &str, change: impl FnOnce(&mut Value)) {
    let mut head = head_of(store, id);
    change(&mut head);
    store.write(&format!("aye/heads/{id}.json"), head.to_string().as_bytes());
}

/// Checks that a session continues on another machine. Directory stores and servers must behave alike.
fn continues_elsewhere(config: &str) {
    let server = script();
    let first = machine(&server, config);
    first.aye(&["exec", "count"]).exits(0);
    let id = id_of(&first);
    let pushed = first.aye(&["sessions", "push", &id]).exits(0).stdout;
    assert!(pushed.contains(&id), "{pushed}");
    let again = first.aye(&["sessions", "push"]).exits(0).stdout;
    assert!(again.contains("up to date"), "{again}");

    let second = machine(&server, config);
    let listed = second.aye(&["sessions", "pull", "--json"]).exits(0).json();
    assert_eq!((&listed[0]["sessionId"], &listed[0]["busy"], &listed[0]["isHere"]), (&json!(id), &json!(false), &json!(false)));
    let pulled = second.aye(&["sessions", "pull", &id[..8]]).exits(0).stdout;
    assert!(pulled.contains(&format!("pulled session {id}")), "{pulled}");
    assert_eq!(records(&first, &id), records(&second, &id));
    let output = second.aye(&["sessions", "export", &id, "--with-artifacts"]).exits(0).stdout;
    let exported: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(exported["aye"]["artifacts"].as_array().map(Vec::len), Some(1), "the artifact was not pulled");
    second.aye(&["exec", "--resume", &id, "go on"]).exits(0);
    assert!(server.request(2).messages().contains("Counted."), "the conversation was not continued");
    second.aye(&["sessions", "push", &id]).exits(0);

    let back = first.aye(&["sessions", "pull", &id]).exits(0).stdout;
    assert!(back.contains("pulled session"), "{back}");
    assert_eq!(records(&first, &id), records(&second, &id));
    let current = first.aye(&["sessions", "pull", &id]).exits(0).stdout;
    assert!(current.contains("is up to date"), "{current}");
}

#[test]
fn a_session_continues_on_another_machine_and_returns() {
    let store = ObjectServer::start();
    continues_elsewhere(&store.config());
    let histories = store.names().into_iter().filter(|name| name.starts_with("aye/histories/")).count();
    assert_eq!(histories, 1, "replaced histories stay: {:?}", store.names());
    let requests = store.log().join("\n");
    assert!(!requests.contains(".."), "{requests}");
}

#[test]
fn a_session_continues_over_a_private_directory_store() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    continues_elsewhere(&format!("[services.workspace]\nurl = \"file://{}\"\n", directory.path().display()));
    for folder in ["heads", "histories", "artifacts"] {
        let mode = fs::metadata(directory.path().join(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder}");
    }
}

#[test]
fn a_session_continues_over_google_cloud_storage() {
    let store = ObjectServer::google();
    continues_elsewhere(&store.config());
    let histories = store.names().into_iter().filter(|name| name.starts_with("aye/histories/")).count();
    assert_eq!(histories, 1, "replaced histories stay: {:?}", store.names());
}

#[test]
fn secrets_that_the_model_writes_are_not_uploaded_and_the_session_still_continues() {
    let secret = format!("ghp_{}", "A1b2C3d4".repeat(4) + "E5f6");
    let store = ObjectServer::start();
    let server = Server::new([
        Answer::text("I will print it.").and_call("call_1", "RunCommand", json!({"command": format!("echo {secret}")})),
        Answer::text(&format!("It is {secret}.")),
        Answer::text("It went on."),
        Answer::text("And on."),
    ]);
    let (first, second) = (machine(&server, &store.config()), machine(&server, &store.config()));
    first.aye(&["exec", "print it"]).exits(0);
    let id = id_of(&first);
    first.aye(&["sessions", "push", &id]).exits(0);
    let uploaded = |store: &ObjectServer| {
        let contents = store.names().into_iter().filter_map(|name| store.read(&name));
        contents.map(|content| String::from_utf8_lossy(&content).into_owned()).collect::<String>()
    };
    assert!(uploaded(&store).contains("[redacted:") && !uploaded(&store).contains(&secret), "{}", uploaded(&store));
    second.aye(&["sessions", "pull", &id]).exits(0);
    second.aye(&["exec", "--resume", &id, "go on"]).exits(0);
    second.aye(&["sessions", "push", &id]).exits(0);
    first.aye(&["sessions", "pull", &id]).exits(0);
    first.aye(&["exec", "--resume", &id, "go on again"]).exits(0);
    first.aye(&["sessions", "push", &id]).exits(0);
    assert!(!uploaded(&store).contains(&secret), "{}", uploaded(&store));
}

#[test]
fn a_session_that_has_not_changed_is_compared_without_reading_its_history() {
    let (store, server) = (ObjectServer::start(), script());
    let project = machine(&server, &store.config());
    project.aye(&["exec", "count"]).exits(0);
    let id = id_of(&project);
    project.aye(&["sessions", "push", &id]).exits(0);
    let before = store.log().len();
    assert!(project.aye(&["sessions", "pull", &id]).exits(0).stdout.contains("is up to date"));
    let requests = store.log().split_off(before);
    assert!(requests.iter().all(|request| !request.contains("histories/")), "{requests:?}");
}

#[test]
fn a_session_is_uploaded_again_only_if_something_changed() {
    let (store, server) = (ObjectServer::start(), script());
    let project = machine(&server, &store.config());
    project.aye(&["exec", "count"]).exits(0);
    let id = id_of(&project);
    project.aye(&["sessions", "push", &id]).exits(0);
    let puts = |store: &ObjectServer| store.log().iter().filter(|request| request.starts_with("PUT ")).count();
    let before = puts(&store);
    assert!(project.aye(&["sessions", "push"]).exits(0).stdout.contains("up to date"));
    assert_eq!(puts(&store), before, "{:?}", store.log());
    project.aye(&["sessions", "rename", &id, "Counting"]).exits(0);
    project.aye(&["sessions", "push", &id]).exits(0);
    assert_eq!(head_of(&store, &id)["title"], json!("Counting"));
    // The history in the store was lost, so it is uploaded again although the session is unchanged.
    let name = format!("aye/histories/{id}/{}.json", head_of(&store, &id)["history"]["digest"].as_str().unwrap());
    let history = store.read(&name).unwrap();
    store.write(&name, b"");
    project.aye(&["sessions", "push", &id]).exits(0);
    assert_eq!(store.read(&name).unwrap(), history);
}

/// Counts the write requests for heads.
fn head_writes(store: &ObjectServer) -> usize {
    store.log().iter().filter(|request| request.starts_with("PUT /") && request.contains("/heads/")).count()
}

#[test]
fn heads_are_replaced_only_if_no_other_machine_was_faster() {
    for store in [ObjectServer::start(), ObjectServer::google()] {
        let server = script();
        let project = machine(&server, &store.config());
        project.aye(&["exec", "count"]).exits(0);
        let id = id_of(&project);
        project.aye(&["sessions", "push", &id]).exits(0);
        project.aye(&["exec", "--resume", &id, "more"]).exits(0);
        // The head changes after the push has read it, so the write fails, and the push compares again.
        change_head(&store, &id, |head| head["owner"]["busy"] = json!(true));
        store.fail("PUT", "heads", 1, Fault::Raced);
        let before = head_writes(&store);
        project.aye(&["sessions", "push", &id]).exits(0);
        assert_eq!(head_writes(&store) - before, 2, "{:?}", store.log());
        assert_eq!(head_of(&store, &id)["records"], json!(records(&project, &id).len()));
        // The response is lost after the write, and the next push finds the new head.
        project.aye(&["exec", "--resume", &id, "and more"]).exits(0);
        change_head(&store, &id, |head| head["owner"]["busy"] = json!(true));
        store.fail("PUT", "heads", 1, Fault::LostAnswer);
        let _ = project.aye(&["sessions", "push", &id]);
        project.aye(&["sessions", "push", &id]).exits(0);
        assert_eq!(head_of(&store, &id)["records"], json!(records(&project, &id).len()));
        assert_eq!(head_of(&store, &id)["owner"]["busy"], json!(false));
    }
}

#[test]
fn histories_that_diverged_are_never_overwritten() {
    for store in [ObjectServer::start(), ObjectServer::google()] {
        histories_that_diverged(&store);
    }
}

fn histories_that_diverged(store: &ObjectServer) {
    let server = script();
    let (first, second) = (machine(&server, &store.config()), machine(&server, &store.config()));
    first.aye(&["exec", "count"]).exits(0);
    let id = id_of(&first);
    first.aye(&["sessions", "push", &id]).exits(0);
    second.aye(&["sessions", "pull", &id]).exits(0);
    second.aye(&["exec", "--resume", &id, "there"]).exits(0);
    second.aye(&["sessions", "push", &id]).exits(0);
    first.aye(&["exec", "--resume", &id, "here"]).exits(0);
    let before = head_of(store, &id);

    let owned = first.aye(&["sessions", "push", &id]).exits(1).stderr;
    assert!(owned.contains("has owned the session since") && owned.contains("--take-over"), "{owned}");
    let diverged = first.aye(&["sessions", "push", &id, "--take-over"]).exits(1).stderr;
    assert!(diverged.contains("continued on two machines") && diverged.contains("sessions fork"), "{diverged}");
    assert_eq!(head_of(store, &id), before);
    let mine = records(&first, &id);
    let refused = first.aye(&["sessions", "pull", &id]).exits(1).stderr;
    assert!(refused.contains("continued on two machines") && refused.contains("--fork"), "{refused}");
    assert_eq!(records(&first, &id), mine);

    let forked = first.aye(&["sessions", "pull", &id, "--fork"]).exits(0).stdout;
    let other = forked.split_whitespace().nth(2).unwrap().trim_end_matches(':');
    assert_ne!(other, id);
    assert_eq!(records(&first, other), records(&second, &id));
    assert_eq!(head_of(store, &id), before, "a fork takes nothing over");
}

#[test]
fn a_session_running_elsewhere_must_be_taken_over() {
    let (store, server) = (ObjectServer::start(), script());
    let (first, second) = (machine(&server, &store.config()), machine(&server, &store.config()));
    first.aye(&["exec", "count"]).exits(0);
    let id = id_of(&first);
    first.aye(&["sessions", "push", &id]).exits(0);
    change_head(&store, &id, |head| head["owner"]["busy"] = json!(true));
    let busy = second.aye(&["sessions", "pull", &id]).exits(1).stderr;
    assert!(busy.contains("a task has been running on") && busy.contains("--take-over"), "{busy}");
    assert!(second.aye(&["sessions", "list"]).exits(0).stdout.contains("no sessions yet"));
    second.aye(&["sessions", "pull", &id, "--take-over"]).exits(0);
    assert_eq!(head_of(&store, &id)["owner"]["busy"], json!(false));
    let owned = first.aye(&["sessions", "push", &id]).exits(1).stderr;
    assert!(owned.contains("has owned the session since"), "{owned}");
    first.aye(&["sessions", "push", &id, "--take-over"]).exits(0);
}

#[test]
fn sessions_are_uploaded_after_a_task_and_results_name_both_artifact_copies() {
    let (store, server) = (ObjectServer::start(), script());
    let project = machine(&server, &store.config());
    let mut screen = project.open(&[]);
    screen.prompt("count");
    screen.wait_for("Counted.");
    let uploaded = wait_until(TIMEOUT, || store.names().iter().any(|name| name.starts_with("aye/heads/")));
    assert!(uploaded, "{:?}", store.log());
    screen.kill();
    let id = id_of(&project);
    let finished = records(&project, &id).into_iter().find(|record| record["entry"]["record"] == "finished").unwrap();
    let uris = finished["entry"]["result"]["artifactUris"].as_array().unwrap().clone();
    let (local, copy) = (uris[0].as_str().unwrap(), uris[1].as_str().unwrap());
    assert!(local.starts_with("artifact:") && copy.starts_with("s3://team/aye/artifacts/"), "{uris:?}");
    let content = store.read(copy.strip_prefix("s3://team/").unwrap()).unwrap();
    assert!(String::from_utf8_lossy(&content).contains(&format!("\n{LINES}")));
    assert!(!server.request(1).messages().contains("s3://"), "the model is not told to read a copy");
}

#[test]
fn an_unavailable_store_is_reported_and_causes_no_delay() {
    let (store, server) = (ObjectServer::start(), script());
    store.fail("", "", usize::MAX, Fault::Silence);
    let project = machine(&server, &store.config());
    let output = project.aye(&["exec", "count"]).exits(0);
    assert!(output.stdout.contains("Counted."), "{}", output.stdout);
    let id = id_of(&project);
    let finished = records(&project, &id).into_iter().find(|record| record["entry"]["record"] == "finished").unwrap();
    let uris = finished["entry"]["result"]["artifactUris"].as_array().unwrap().clone();
    assert_eq!(uris.len(), 1, "{uris:?}");
    store.recover();
    project.aye(&["sessions", "push", &id]).exits(0);
    assert!(store.names().iter().any(|name| name.starts_with("aye/artifacts/")), "{:?}", store.names());
}

#[test]
fn overloaded_and_lost_requests_are_retried_without_a_second_effect() {
    let (store, server) = (ObjectServer::start(), script());
    let project = machine(&server, &store.config());
    project.aye(&["exec", "count"]).exits(0);
    let id = id_of(&project);
    store.fail("PUT", "artifacts/", 1, Fault::Status(503));
    store.fail("PUT", "histories/", 1, Fault::LostAnswer);
    store.fail("PUT", "heads/", 1, Fault::LostAnswer);
    project.aye(&["sessions", "push", &id]).exits(0);
    assert_eq!(head_of(&store, &id)["records"], json!(records(&project, &id).len()));
    // Another machine has replaced the head in the meantime, so the push compares again.
    project.aye(&["exec", "--resume", &id, "more"]).exits(0);
    store.fail("PUT", "heads/", 1, Fault::Status(412));
    project.aye(&["sessions", "push", &id]).exits(0);
    assert_eq!(head_of(&store, &id)["records"], json!(records(&project, &id).len()));
}

#[test]
fn rejected_credentials_and_missing_settings_are_explained() {
    let (store, server) = (ObjectServer::start(), script());
    let project = machine(&server, &store.config());
    project.aye(&["exec", "count"]).exits(0);
    store.fail("", "", usize::MAX, Fault::Status(403));
    let refused = project.aye(&["sessions", "push"]).exits(1).stderr;
    assert!(refused.contains("rejected the credentials"), "{refused}");
    assert!(!refused.contains("secret-of-the-store"), "{refused}");
    store.recover();
    store.fail("", "", usize::MAX, Fault::Skewed);
    let skewed = project.aye(&["sessions", "push"]).exits(1).stderr;
    assert!(skewed.contains("this machine's clock differs"), "{skewed}");
    let other = machine(&server, "");
    let unset = other.aye(&["sessions", "pull"]).exits(2).stderr;
    assert!(unset.contains("services.workspace.url"), "{unset}");
    let nested = project.env("AYE", "1").aye(&["sessions", "pull"]).exits(2).stderr;
    assert!(nested.contains("cannot push or pull"), "{nested}");
}

#[test]
fn hostile_and_damaged_objects_are_rejected_and_change_nothing() {
    let (store, server) = (ObjectServer::start(), script());
    let first = machine(&server, &store.config());
    first.aye(&["exec", "count"]).exits(0);
    let id = id_of(&first);
    first.aye(&["sessions", "push", &id]).exits(0);
    let second = machine(&server, &store.config());
    let good = head_of(&store, &id);
    let history = format!("aye/histories/{id}/{}.json", good["history"]["digest"].as_str().unwrap());
    let text = store.read(&history).unwrap();
    let digest = good["artifacts"][0]["digest"].as_str().unwrap().to_owned();
    let artifact = format!("aye/artifacts/{}/{digest}", &digest[..2]);
    let content = store.read(&artifact).unwrap();

    let other = "0123456789abcdef0123456789abcdef";
    let cases: Vec<(&str, Value, &str)> = vec![
        ("another session", json!({"sessionId": other}), "the head belongs to session"),
        ("a path as digest", json!({"history": {"digest": "../../etc/passwd", "bytes": 10}}), "digest is invalid"),
        ("a huge history", json!({"history": {"digest": good["history"]["digest"], "bytes": 1_u64 << 40}}), "the limit is"),
        ("a longer history", json!({"history": {"digest": good["history"]["digest"], "bytes": text.len() + 1}}), "truncated"),
        ("a shorter history", json!({"history": {"digest": good["history"]["digest"], "bytes": text.len() - 1}}), "larger than"),
        ("another number of records", json!({"records": 1}), "its head says 1"),
        ("another format", json!({"format": 9}), "update aye"),
        (
            "an artifact with another digest",
            json!({"artifacts": [{"digest": "ab".repeat(32), "uri": good["artifacts"][0]["uri"],
            "kind": "tool_output", "name": "x", "contentType": "text/plain", "bytes": 3}]}),
            "does not match its digest",
        ),
        (
            "an artifact outside the folder",
            json!({"artifacts": [{"digest": format!("../{}", "a".repeat(61)), "uri": "artifact:../aaaaaaaaaaaa",
            "kind": "tool_output", "name": "x", "contentType": "text/plain", "bytes": 3}]}),
            "does not match its digest",
        ),
    ];
    let is_refused = |name: &str, why: &str| {
        let refused = second.aye(&["sessions", "pull", &id]).exits(1).stderr;
        assert!(refused.contains(why) && refused.contains("nothing was changed"), "{name}: {refused}");
        assert!(second.aye(&["sessions", "list"]).exits(0).stdout.contains("no sessions yet"), "{name}");
    };
    for (name, change, why) in cases {
        change_head(&store, &id, |head| head.as_object_mut().unwrap().extend(change.as_object().unwrap().clone()));
        is_refused(name, why);
        store.write(&format!("aye/heads/{id}.json"), good.to_string().as_bytes());
    }
    store.write(&format!("aye/heads/{id}.json"), b"{\"format\": 1");
    is_refused("half a head", "not the head");
    store.write(&format!("aye/heads/{id}.json"), &vec![b' '; 9 << 20]);
    is_refused("a huge head", "larger than");
    store.write(&format!("aye/heads/{id}.json"), good.to_string().as_bytes());
    let mut changed = text.clone();
    let last = changed.len() - 10;
    changed[last] ^= 1;
    store.write(&history, &changed);
    is_refused("a changed history", "does not match its digest");
    store.write(&history, &text);
    store.write(&artifact, &vec![b'x'; content.len()]);
    is_refused("a changed artifact", "does not match its digest");
    store.write(&artifact, &content);
    change_head(&store, &id, |head| head["history"]["digest"] = json!("0".repeat(64)));
    is_refused("a history that does not exist", "does not exist");
    store.write(&format!("aye/heads/{id}.json"), good.to_string().as_bytes());

    // A valid history that belongs to another session.
    let mut forged: Value = serde_json::from_slice(&text).unwrap();
    forged["sessionId"] = json!(other);
    let forged = serde_json::to_vec(&forged).unwrap();
    let digest = blake3::hash(&forged).to_hex().to_string();
    store.write(&format!("aye/histories/{id}/{digest}.json"), &forged);
    change_head(&store, &id, |head| head["history"] = json!({"digest": digest, "bytes": forged.len()}));
    is_refused("the history of another session", "the history belongs to session");
    store.write(&format!("aye/heads/{id}.json"), good.to_string().as_bytes());
    second.aye(&["sessions", "pull", &id]).exits(0);
}

#[test]
fn truncated_responses_are_not_accepted_as_objects() {
    let (store, server) = (ObjectServer::start(), script());
    let first = machine(&server, &store.config());
    first.aye(&["exec", "count"]).exits(0);
    let id = id_of(&first);
    first.aye(&["sessions", "push", &id]).exits(0);
    let second = machine(&server, &store.config());
    store.fail("GET", "histories/", usize::MAX, Fault::Half);
    second.aye(&["sessions", "pull", &id]).exits(1);
    assert!(second.aye(&["sessions", "list"]).exits(0).stdout.contains("no sessions yet"));
    store.recover();
    second.aye(&["sessions", "pull", &id]).exits(0);
    assert_eq!(records(&first, &id), records(&second, &id));
}

#[test]
fn a_crash_at_any_request_of_a_push_or_a_pull_loses_nothing() {
    let (store, server) = (ObjectServer::start(), script());
    let first = machine(&server, &store.config());
    // The store does not respond during the task, so the task uploads nothing.
    store.fail("", "", usize::MAX, Fault::Silence);
    first.aye(&["exec", "count"]).exits(0);
    store.recover();
    let id = id_of(&first);
    let expected = records(&first, &id);
    for (method, part) in
        [("GET", "heads/"), ("HEAD", "artifacts/"), ("PUT", "artifacts/"), ("PUT", "histories/"), ("PUT", "heads/")]
    {
        store.fail(method, part, 1, Fault::Silence);
        crash_at(&first, &store, &["sessions", "push", &id], method, part);
        assert_eq!(records(&first, &id), expected, "{method} {part}");
        assert_eq!(store.read(&format!("aye/heads/{id}.json")), None, "{method} {part}");
    }
    first.aye(&["sessions", "push", &id]).exits(0);
    let second = machine(&server, &store.config());
    for (method, part) in [("GET", "heads/"), ("GET", "histories/"), ("GET", "artifacts/"), ("PUT", "heads/")] {
        store.fail(method, part, 1, Fault::Silence);
        crash_at(&second, &store, &["sessions", "pull", &id], method, part);
        assert!(second.aye(&["sessions", "list"]).exits(0).stdout.contains("no sessions yet"), "{method} {part}");
    }
    second.aye(&["sessions", "pull", &id]).exits(0);
    assert_eq!(records(&second, &id), expected);
    first.aye(&["sessions", "pull", &id]).exits(0);
}

/// Runs aye until the server withholds a response, and then kills aye.
fn crash_at(project: &Project, store: &ObjectServer, arguments: &[&str], method: &str, part: &str) {
    let before = store.log().len();
    let running = project.start(arguments);
    let reached = wait_until(TIMEOUT, || {
        store.log()[before..].iter().any(|request| request.starts_with(&format!("{method} /")) && request.contains(part))
    });
    running.kill();
    store.recover();
    assert!(reached, "{method} {part}: {:?}", &store.log()[before..]);
}

#[test]
fn commands_get_no_credentials_of_the_store() {
    let (store, server) = (
        ObjectServer::start(),
        Server::new([
            Answer::text("").and_call("call_1", "RunCommand", json!({"command": "echo \"key: $AWS_SECRET_ACCESS_KEY.\""})),
            Answer::text("Done."),
        ]),
    );
    let project = machine(&server, &store.config());
    project.aye(&["exec", "look"]).exits(0);
    assert!(server.request(1).messages().contains("key: ."), "{}", server.request(1).messages());
}

#[test]
fn a_missed_upload_follows_with_the_next_session() {
    let (store, server) = (ObjectServer::start(), script());
    store.fail("", "", usize::MAX, Fault::Silence);
    let project = machine(&server, &store.config());
    project.aye(&["exec", "count"]).exits(0);
    let id = id_of(&project);
    assert_eq!(store.names(), Vec::<String>::new());
    store.recover();
    let mut screen = project.open(&[]);
    let name = format!("aye/heads/{id}.json");
    assert!(wait_until(TIMEOUT, || store.read(&name).is_some()), "{:?}", store.log());
    screen.kill();
    assert_eq!(head_of(&store, &id)["records"], json!(records(&project, &id).len()));
    assert_eq!(head_of(&store, &id)["owner"]["busy"], json!(false));
}

#[test]
fn sync_pushes_pending_sessions() {
    let (store, server) = (ObjectServer::start(), script());
    store.fail("", "", usize::MAX, Fault::Silence);
    let project = machine(&server, &store.config());
    project.aye(&["exec", "count"]).exits(0);
    store.recover();
    store.fail("", "", usize::MAX, Fault::Status(403));
    let failed = project.aye(&["sync"]).exits(1).stdout;
    assert!(failed.contains("workspace: 0 records delivered, 1 record left"), "{failed}");
    store.recover();
    let synced = project.aye(&["sync"]).exits(0).stdout;
    assert!(synced.contains("workspace: 1 record delivered"), "{synced}");
    assert_eq!(head_of(&store, &id_of(&project))["owner"]["busy"], json!(false));
}

/// Uses real emulators, which `tests/services.sh` starts. These variables contain their addresses.
#[test]
#[ignore = "needs the emulators of tests/services.sh"]
fn sessions_continue_over_real_emulators() {
    let mut tried = 0;
    for (name, settings) in
        [("AYE_TEST_S3", "url = \"s3://team/aye\"\nregion = \"us-east-1\""), ("AYE_TEST_AZURE", "url = \"az://team/aye\"")]
    {
        let Ok(endpoint) = std::env::var(name) else { continue };
        tried += 1;
        continues_elsewhere(&format!("[services.workspace]\n{settings}\nendpoint = \"{endpoint}\"\n"));
    }
    assert!(tried > 0, "no emulator is named");
}
