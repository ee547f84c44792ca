//! Scheduled jobs: the script in `docs/fleet/`, run with the built binary, and an object store as the only shared
//! state.

use crate::support::{Answer, Gate, Output, Project, Running, Server};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::path::Path;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/fleet/aye-job.sh");

/// Creates a machine of the fleet with its own home and workspace, and with the shared object store.
fn machine(server: &Server, store: &Path, job: &str) -> Project {
    let project = Project::outside_tmp_with(server).allowing_everything();
    let config = format!("[services.workspace]\nurl = \"file://{}\"\n", store.display());
    let out = project.path("../out").display().to_string();
    let environment = [
        ("AYE_JOB_PROGRAM", env!("CARGO_BIN_EXE_aye")),
        ("AYE_JOB_NAME", job),
        ("AYE_JOB_PROMPT", "--help count; $(touch pwned)"),
        ("AYE_JOB_OUT", &out),
    ];
    let project = project.config(&config);
    environment.into_iter().fold(project, |project, (name, value)| project.env(name, value))
}

fn run(machine: &Project) -> Output {
    machine.run_program("bash", &[SCRIPT])
}

fn start(machine: &Project) -> Running {
    machine.start_program("bash", &[SCRIPT])
}

fn stored(machine: &Project) -> Value {
    machine.aye(&["sessions", "pull", "--json"]).exits(0).json()
}

#[test]
fn a_job_stores_its_session_under_the_name_of_the_job() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::new([Answer::text("Done.")]);
    let machine = machine(&server, store.path(), "nightly.count_1");
    run(&machine).exits(0);
    let listed = stored(&machine);
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["title"]), (Some(1), &json!("nightly.count_1")), "{listed}");
    assert!(server.request(0).messages().contains("--help count; $(touch pwned)") && !machine.exists("pwned"));
}

#[test]
fn a_job_that_the_scheduler_ends_is_continued_on_another_machine() {
    let store = tempfile::tempdir().unwrap();
    let gate = Gate::default();
    let server = Server::new([
        Answer::text("I will write.").and_call("c1", "WriteFile", json!({"path": "a.txt", "content": "a\n"})),
        Answer::text("I go").and_wait(&gate).and(" on."),
        Answer::text("Finished."),
    ]);
    let first = machine(&server, store.path(), "count");
    let running = start(&first);
    server.request(1);
    running.signal(Signal::SIGTERM);
    running.finish().exits(143);
    gate.open();
    let second = machine(&server, store.path(), "count");
    run(&second).exits(0);
    // The conversation of the first machine continues, and nothing runs twice.
    let messages = server.request(2).messages();
    assert!(messages.contains("I will write.") && messages.contains("--help count"), "{messages}");
    assert_eq!((second.exists("a.txt"), stored(&second).as_array().map(Vec::len)), (false, Some(1)));
    // Another attempt at a finished job changes nothing.
    let before = stored(&second);
    run(&machine(&server, store.path(), "count"));
    assert_eq!(stored(&second)[0]["records"], before[0]["records"]);
}

#[test]
fn jobs_with_invalid_settings_fail_before_anything_is_sent() {
    let store = tempfile::tempdir().unwrap();
    let server = Server::new([]);
    for name in ["", "a b", "../x", "a;b", "a\nb"] {
        let output = run(&machine(&server, store.path(), name)).exits(2);
        assert!(output.stderr.contains("AYE_JOB_NAME"), "{name:?}: {}", output.stderr);
    }
    let without_store = machine(&server, store.path(), "count").config("");
    run(&without_store).exits(1);
    assert!(server.requests().is_empty());
}
