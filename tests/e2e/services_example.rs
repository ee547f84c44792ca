//! Example receiver in `docs/services/`, used with the built binary.

use crate::support::{Answer, Project, Server, TIMEOUT, wait_until};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

const RECEIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/services/receiver.py");
const SECRET: &str = "a secret of this test";

/// Running receiver with its address and its printed lines.
struct Receiver {
    child: Child,
    url: String,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    /// Starts the receiver on a free port. Returns `None` without Python.
    fn start() -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-B", RECEIVER, "0"]).env("AYE_APPROVAL_SECRET", SECRET);
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().ok()?;
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        output.read_line(&mut first).unwrap();
        let url = first.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{first:?}")).to_owned();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let printed = lines.clone();
        std::thread::spawn(move || output.lines().map_while(Result::ok).for_each(|line| printed.lock().unwrap().push(line)));
        Some(Self { child, url, lines })
    }

    #[track_caller]
    fn prints(&self, line: &str) {
        let has_line = || self.lines.lock().unwrap().iter().any(|printed| printed.starts_with(line));
        assert!(wait_until(TIMEOUT, has_line), "{line} is missing in {:?}", self.lines.lock().unwrap());
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_example_receiver_approves_edits_and_prints_decisions_records_and_spans() {
    let Some(receiver) = Receiver::start() else {
        eprintln!("skipped: python3 is not installed");
        return;
    };
    let server =
        Server::new([Answer::call("c1", "WriteFile", json!({"path": "new.txt", "content": "new\n"})), Answer::text("Done.")]);
    let url = &receiver.url;
    let config = format!(
        "[services.approvals]\nurl = \"{url}/approvals\"\nsecret = \"env:AYE_APPROVAL_SECRET\"\nask = true\n\
         [services.audit]\nurl = \"{url}\"\n[services.telemetry]\nurl = \"{url}\"\n"
    );
    let project = Project::with(&server).config(&config);
    let project = project.env("AYE_APPROVAL_SECRET", SECRET).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    project.aye(&["exec", "write a file"]).exits(0);
    assert_eq!(project.read("new.txt"), "new\n");
    project.aye(&["sync"]).exits(0);
    for line in [
        "question: approved",
        "approval.decided: approved by service",
        "logRecords: aye.call.finished",
        "spans: execute_tool WriteFile",
        "metrics: gen_ai.client.token.usage",
    ] {
        receiver.prints(line);
    }
}
