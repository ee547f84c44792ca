//! `aye serve` with clients that disconnect, flood the server, send garbage or do not read; its socket; and the
//! protocol documentation.

use crate::support::{Answer, Gate, Project, Rpc, Server, TIMEOUT, processes_running, texts, wait_until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Process of `aye serve` on a socket, which is killed at the end of the test.
struct Host {
    child: Child,
    path: PathBuf,
}

impl Host {
    #[track_caller]
    fn start(project: &Project, path: &Path) -> Self {
        let words = ["--trust", "serve", "--socket", path.to_str().unwrap()];
        let child = project.command(&words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let host = Self { child, path: path.to_owned() };
        assert!(wait_until(TIMEOUT, || UnixStream::connect(&host.path).is_ok()), "nobody listens");
        host
    }

    #[track_caller]
    fn client(&self) -> Rpc {
        let mut client = None;
        // The previous client may still be connected.
        let taken = wait_until(TIMEOUT, || {
            let mut fresh = Rpc::connect(&self.path).unwrap();
            fresh.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"there\",\"method\":\"NoSuchMethod\"}\n").ok();
            let answered = fresh.next().is_some_and(|answer| answer["id"] == "there");
            client = Some(fresh).filter(|_| answered);
            answered
        });
        assert!(taken, "no client is taken");
        client.unwrap()
    }

    #[track_caller]
    fn ends(&mut self) -> i32 {
        assert!(wait_until(TIMEOUT, || self.child.try_wait().unwrap().is_some()), "the host goes on");
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn memory_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_session_can_be_continued_after_its_client_disconnects() {
    let sleep = ["sleep", "7531"];
    let server = Server::new([
        Answer::call("call_1", "RunCommand", json!({"command": "touch begun; sleep 7531"})),
        Answer::text("So it was stopped."),
    ]);
    let project = Project::with(&server).allowing_everything();
    let mut client = Rpc::start(&project, &["--trust"]);
    let session = client.create(&project)["sessionId"].as_str().unwrap().to_owned();
    client.call("StartTask", json!({"prompt": "wait"}));
    assert!(wait_until(TIMEOUT, || project.exists("begun")));
    assert_eq!(client.leave(), 0);
    assert_eq!(processes_running(&sleep), 0, "what ran is stopped");
    let events = project.aye(&["--trust", "exec", "--json", &format!("--resume={session}")]).exits(0).events();
    assert_eq!(events.only("task_completed")["text"], "So it was stopped.");
}

#[test]
fn tasks_interrupted_by_a_signal_or_disconnect_are_paused_and_can_be_resumed() {
    for signal in [Some(Signal::SIGTERM), None] {
        let gate = Gate::default();
        let server = Server::new([Answer::text("On").and_wait(&gate), Answer::text("Done.")]);
        let project = Project::with(&server);
        let mut client = Rpc::start(&project, &[]);
        let session = client.create(&project)["sessionId"].as_str().unwrap().to_owned();
        client.call("StartTask", json!({"prompt": "go"}));
        client.event("text_chunk");
        match signal {
            Some(signal) => client.signal(signal),
            None => client.hang_up(),
        }
        let paused = client.until(|message| message["params"]["payload"]["sessionStatus"] == "SESSION_PAUSED");
        assert_eq!(paused["params"]["payload"]["task"]["taskId"], "task_001");
        client.event("session_paused");
        assert_eq!(client.next(), None, "{signal:?}: nothing says that the session was completed or cancelled");
        assert_eq!(client.finish(), if signal.is_some() { 143 } else { 0 });
        gate.open();
        let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
        assert_eq!(listed[0]["open"], "paused", "{listed}");
        let exported = project.aye(&["sessions", "export", &session]).exits(0).json();
        assert_eq!(exported["sessionStatus"], "SESSION_PAUSED");
        let mut again = Rpc::start(&project, &[]);
        let resumed = again.call("ResumeSession", json!({"sessionId": session}));
        assert_eq!(resumed["task"]["taskId"], "task_001", "{resumed}");
        assert_eq!(again.event("task_completed")["text"], "Done.");
        assert_eq!(again.leave(), 0);
    }
}

#[test]
fn requests_sent_at_once_before_closing_the_input_are_answered() {
    let project = Project::with(&Server::new([]));
    let create = json!({"jsonrpc": "2.0", "id": 1, "method": "CreateSession", "params": Rpc::hello(&project)});
    let end = json!({"jsonrpc": "2.0", "id": 2, "method": "Shutdown"});
    let output = project.aye_with_input(&["serve", "--stdio"], &format!("{create}\n{end}")).exits(0);
    let answers: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |id: u32| answers.iter().find(|answer| answer["id"] == id).unwrap()["result"].clone();
    assert_eq!((&of(1)["sessionStatus"], &of(2)["status"]), (&json!("SESSION_RUNNING"), &json!("SESSION_COMPLETED")));
}

#[test]
fn nested_aye_processes_cannot_approve_calls_through_their_own_host() {
    let call = Answer::call("call_1", "WriteFile", json!({"path": "a.txt", "content": "alpha\n"}));
    let server = Server::new([call, Answer::text("Then not.")]);
    let project = Project::with(&server).env("AYE", "1");
    let mut client = Rpc::start(&project, &[]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "write it"}));
    assert_eq!(client.event("approval_resolved")["reason"], texts::NO_ONE_TO_ASK);
    client.event("task_completed");
    assert!(!project.exists("a.txt"));
}

#[test]
fn invalid_messages_get_an_error_and_the_next_request_is_processed() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut client = Rpc::start(&project, &[]);
    let deep = "[".repeat(200_000);
    for garbage in [&b"nonsense\n"[..], b"\xff\xfe{}\n", b"{\"jsonrpc\":\n", b"\0\0\0\n", b"[1,2\n", deep.as_bytes()] {
        client.send_bytes(garbage).unwrap();
        client.send_bytes(b"\n").unwrap();
        let answer = client.next().unwrap();
        assert!(answer["id"].is_null() && answer["error"]["code"] == -32700, "{answer}");
    }
    client.create(&project);
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"Shut").unwrap();
    assert_eq!(client.leave(), 0, "half a line is no request");
}

#[test]
fn a_hundred_megabyte_line_is_skipped_without_buffering() {
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut client = Rpc::start(&project, &[]);
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"StartTask\",\"params\":{\"prompt\":\"").unwrap();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        client.send_bytes(&piece).unwrap();
    }
    client.send_bytes(b"\"}}\n").unwrap();
    assert_eq!(client.next().unwrap()["error"]["code"], -32600);
    assert_eq!(client.fails("GetSessionState", json!({})), -32001);
    let used = memory_kb(client.pid());
    assert!(used < 200 << 10, "{used} kB");
}

#[test]
fn many_requests_are_answered_in_order_with_backpressure() {
    const COUNT: u64 = 20_000;
    let server = Server::new([]);
    let project = Project::with(&server);
    let mut child = project
        .command(&["serve", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let id = child.id();
    let padding = "x".repeat(2_000);
    let flood = std::thread::spawn(move || {
        for number in 0..COUNT {
            let request = json!({"jsonrpc": "2.0", "id": [number, padding], "method": "GetSessionState"});
            writeln!(to, "{request}").unwrap();
        }
        to
    });
    // The complete output would be 40 MB. It is not produced while the client does not read.
    let first = memory_kb(id);
    let mut lines = BufReader::new(from).lines();
    for number in 0..COUNT {
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"][0], number);
    }
    // The process runs while its input is open.
    let to = flood.join().unwrap();
    let used = memory_kb(id);
    drop(to);
    assert!(used < first.max(60 << 10) + (60 << 10), "{first} kB, then {used} kB");
    assert!(wait_until(TIMEOUT, || child.try_wait().unwrap().is_some()));
}

/// Returns text that is larger than a pipe and the queue together, and the response that streams this text in many
/// chunks.
fn long_answer() -> (String, Answer) {
    let long: Vec<String> = (0..400).map(|number| format!("{number} {}", "word ".repeat(4_000))).collect();
    let answer = long.iter().fold(Answer::empty(), |answer, piece| answer.and(piece));
    (long.concat(), answer)
}

/// Starts `aye serve` with a task whose output is not read yet.
fn asked_and_unread(project: &Project) -> (Child, ChildStdin, ChildStdout) {
    let mut command = project.command(&["serve", "--stdio"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let create = json!({"jsonrpc": "2.0", "id": 1, "method": "CreateSession", "params": Rpc::hello(project)});
    let start = json!({"jsonrpc": "2.0", "id": 2, "method": "StartTask", "params": {"prompt": "tell me"}});
    writeln!(to, "{create}\n{start}").unwrap();
    (child, to, from)
}

#[test]
fn a_slow_client_receives_the_complete_output() {
    let (long, answer) = long_answer();
    let server = Server::new([answer]);
    let project = Project::with(&server);
    let (mut child, to, from) = asked_and_unread(&project);
    server.request(0);
    let mut text = String::new();
    let mut lines = BufReader::new(from).lines();
    loop {
        let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        match message["params"]["eventType"].as_str() {
            Some("text_chunk") => text += message["params"]["payload"]["text"].as_str().unwrap(),
            Some("task_completed") => break,
            _ => {}
        }
    }
    assert!(text == long, "{} bytes of {}", text.len(), long.len());
    drop(to);
    assert!(wait_until(TIMEOUT, || child.try_wait().unwrap().is_some()));
}

#[test]
fn the_session_is_saved_if_the_client_disconnects_without_reading() {
    let (_, answer) = long_answer();
    let server = Server::new([Answer::call("call_1", "ReadFile", json!({"path": "a.txt"})), answer]);
    let project = Project::with(&server).file("a.txt", "alpha\n");
    let (mut child, to, from) = asked_and_unread(&project);
    server.request(1);
    drop((to, from));
    assert!(wait_until(TIMEOUT, || child.try_wait().unwrap().is_some()), "it ends by itself");
    let listed = project.aye(&["sessions", "list", "--json"]).exits(0).json();
    let id = listed[0]["sessionId"].as_str().unwrap();
    let exported = project.aye(&["sessions", "export", id]).exits(0).stdout;
    assert!(exported.contains("alpha"), "the call and its outcome were written down");
}

#[test]
fn a_socket_serves_one_user_and_one_client() {
    let gate = Gate::default();
    let server = Server::new([Answer::text("On").and_wait(&gate), Answer::text("And on.")]);
    let project = Project::with(&server);
    let path = project.directory("run").join("aye.sock");
    let mut host = Host::start(&project, &path);
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let mut first = host.client();
    let session = first.create(&project)["sessionId"].clone();
    let mut second = Rpc::connect(&path).unwrap();
    let refused = second.next().unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("another client"), "{refused}");
    assert_eq!(second.next(), None, "and disconnected");
    drop(first);
    let mut next = host.client();
    assert_eq!(next.fails("GetSessionState", json!({})), -32001, "the session went with its client");
    assert!(next.fails("ResumeSession", json!({"sessionId": session})) == -32001, "nothing was said in it, so it is not kept");
    next.create(&project);
    next.call("StartTask", json!({"prompt": "go"}));
    next.event("text_chunk");
    drop(next);
    assert_eq!(host.ends(), 0, "who leaves a task behind takes the process along");
    assert!(!path.exists());
    gate.open();
}

#[test]
fn stale_sockets_are_replaced_and_sockets_in_use_are_not() {
    let project = Project::with(&Server::new([]));
    let path = project.directory("run").join("aye.sock");
    let mut host = Host::start(&project, &path);
    let words = ["serve", "--socket", path.to_str().unwrap()];
    project.aye(&words).exits(2).says(&["is listening on"]);
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_socket(), "it was left there");
    let mut host = Host::start(&project, &path);
    let mut client = host.client();
    client.call("Shutdown", json!({}));
    assert_eq!(host.ends(), 0);
    std::fs::write(&path, "mine").unwrap();
    project.aye(&words).exits(2).says(&["is not your socket"]);
    let open = project.directory("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    project.aye(&["serve", "--socket", open.join("s").to_str().unwrap()]).exits(2).says(&["is writable by others"]);
    project.aye(&["serve"]).exits(2);
}

#[test]
fn other_users_are_rejected_even_if_the_socket_permissions_allow_them() {
    if !nix::unistd::geteuid().is_root() {
        return println!("skipped: only root can be another user");
    }
    let place = tempfile::Builder::new().prefix("aye-serve-").tempdir_in("/tmp").unwrap();
    let project = Project::with(&Server::new([]));
    let path = place.path().join("s");
    let host = Host::start(&project, &path);
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let script = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}'); print(s.recv(4096).decode())",
        path.display()
    );
    let as_nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", &script];
    let Ok(output) = std::process::Command::new("setpriv").args(as_nobody).output() else {
        return println!("skipped: no setpriv here");
    };
    if !output.status.success() {
        return println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
    }
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("user 65534 may not use this host"), "{told}");
    host.client();
}

/// Returns whether a message contains all of an example; `…` matches any value except null.
fn shows(example: &Value, message: &Value) -> bool {
    match (example, message) {
        (Value::String(text), message) if text == "…" => !message.is_null(),
        (Value::Object(members), Value::Object(all)) => {
            members.iter().all(|(name, value)| all.get(name).is_some_and(|other| shows(value, other)))
        }
        (Value::Array(items), Value::Array(all)) => {
            items.len() <= all.len() && items.iter().zip(all).all(|(item, other)| shows(item, other))
        }
        (example, message) => example == message,
    }
}

#[test]
fn the_example_session_on_the_protocol_page_works_as_documented() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/PROTOCOL.md")).unwrap();
    let lines = page.split("```jsonrpc\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let call = Answer::text("I write it.").and_call("call_1", "WriteFile", json!({"path": "a.txt", "content": "alpha\n"}));
    let server = Server::new([call, Answer::text("It is written.")]);
    let project = Project::with(&server);
    let mut client = Rpc::start(&project, &[]);
    for line in lines.lines() {
        let line = line.replace("WORKSPACE", project.path("").to_str().unwrap().trim_end_matches('/'));
        if let Some(request) = line.strip_prefix("→ ") {
            client.send_bytes(format!("{request}\n").as_bytes()).unwrap();
        } else if let Some(example) = line.strip_prefix("← ") {
            let example: Value = serde_json::from_str(example).unwrap_or_else(|error| panic!("{error} in {line}"));
            client.until(|message| shows(&example, message));
        }
    }
    assert_eq!(client.finish(), 0);
    assert_eq!(project.read("a.txt"), "alpha\n");
}
