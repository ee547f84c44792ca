//! `aye mcp serve` with clients that cancel calls, disconnect, flood the server or send garbage.

use crate::support::{Project, Rpc, TIMEOUT, processes_running, wait_until};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

fn client(project: &Project, flags: &[&str], capabilities: Value) -> Rpc {
    let mut client = Rpc::start_with(project, &[&["mcp", "serve"], flags].concat());
    let info = json!({"name": "test", "version": "1"});
    client.call("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}));
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client
}

/// Starts a command that runs until it is killed. Returns the ID of the call, and the argument of `sleep` that
/// identifies the command.
fn start(client: &mut Rpc, number: u32) -> (u64, String) {
    let seconds = format!("{number}.{}", std::process::id());
    let command = json!({"command": format!("echo begun; sleep {seconds} & wait")});
    let id = client.ask("tools/call", json!({"name": "RunCommand", "arguments": command}));
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 1), "it does not run: {}", client.stderr());
    (id, seconds)
}

fn is_gone(seconds: &str) -> bool {
    wait_until(TIMEOUT, || processes_running(&["sleep", seconds]) == 0)
}

#[test]
fn a_cancelled_call_kills_its_processes_and_other_calls_continue() {
    let project = Project::empty().allowing_everything();
    let mut client = client(&project, &[], json!({}));
    let (id, seconds) = start(&mut client, 71);
    let (_, other) = start(&mut client, 72);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}}));
    assert!(is_gone(&seconds));
    assert_eq!(processes_running(&["sleep", &other]), 1);
    assert_eq!(client.call("ping", json!({})), json!({}));
    assert!(client.seen.iter().all(|message| message["id"] != id), "nobody waits for its answer");
    assert_eq!(client.leave(), 0);
    assert!(is_gone(&other), "it ends with its client");
}

#[test]
fn background_sessions_end_with_their_client() {
    let project = Project::empty().allowing_everything();
    let mut client = client(&project, &[], json!({}));
    let seconds = format!("73.{}", std::process::id());
    let session = json!({"name": "CliSession", "arguments": {"command": format!("sleep {seconds}")}});
    client.call("tools/call", session);
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 1));
    assert_eq!(client.leave(), 0);
    assert!(is_gone(&seconds));
}

#[test]
fn a_signal_stops_the_server_and_its_commands() {
    let project = Project::empty().allowing_everything();
    let mut client = client(&project, &[], json!({}));
    let (_, seconds) = start(&mut client, 74);
    client.signal(Signal::SIGTERM);
    assert_eq!(client.finish(), 143);
    assert!(is_gone(&seconds));
}

#[test]
fn command_output_is_reported_as_progress_while_the_command_runs() {
    let project = Project::empty().allowing_everything();
    let mut client = client(&project, &[], json!({}));
    let command = "echo 'first words'; while [ ! -e go ]; do sleep 0.01; done; echo done";
    let call = json!({"name": "RunCommand", "arguments": {"command": command}, "_meta": {"progressToken": "p-1"}});
    let id = client.ask("tools/call", call);
    let told = client.until(|message| message["method"] == "notifications/progress")["params"].clone();
    assert_eq!(told["progressToken"], "p-1");
    assert!(told["message"].as_str().unwrap().contains("first words") && told["progress"].as_f64() > Some(0.0), "{told}");
    std::fs::write(project.path("go"), "").unwrap();
    assert!(client.answer(id)["result"].to_string().contains("done"));
}

#[test]
fn invalid_messages_are_answered_and_the_server_continues() {
    let project = Project::empty().file("a.txt", "alpha\n");
    let mut client = Rpc::start_with(&project, &["mcp", "serve"]);
    // These messages arrive before the handshake.
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client.send(&json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    let info = json!({"name": "test", "version": "1"});
    client.call("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}));
    let too_long = [vec![b'x'; 17 << 20], b"\n".to_vec()].concat();
    let lines: [(&[u8], i64); 6] = [
        (b"nonsense\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"met\n", -32700),
        (b"{}\n", -32600),
        (b"[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}]\n", -32600),
        (&too_long, -32600),
    ];
    for (line, code) in lines {
        client.send_bytes(line).unwrap();
        assert_eq!(client.next().unwrap()["error"]["code"], code, "{}", String::from_utf8_lossy(&line[..line.len().min(60)]));
    }
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/of-nobody", "params": {"x": 1}}));
    client.send_bytes(b"\n\r\n").unwrap();
    let read = client.call("tools/call", json!({"name": "ReadFile", "arguments": {"path": "a.txt"}}));
    assert!(read["content"][0]["text"].as_str().unwrap().contains("alpha"), "{read}");
    client.send_bytes(b"{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"tools/ca").unwrap();
    assert_eq!(client.leave(), 0, "half a line is no request");
}

#[test]
fn calls_beyond_the_pending_limit_are_rejected_immediately() {
    let project = Project::empty();
    let mut client = client(&project, &["--ask", "client"], json!({"elicitation": {"form": {}}}));
    // Each call waits for an answer that never arrives.
    for number in 0..70 {
        let write = json!({"path": format!("{number}.txt"), "content": "x"});
        client.ask("tools/call", json!({"name": "WriteFile", "arguments": write}));
    }
    let refused = client.until(|message| message["error"]["code"] == -32000);
    assert!(refused["error"]["message"].as_str().unwrap().contains("requests are still unanswered"), "{refused}");
    assert_eq!(client.leave(), 0);
    assert!(!project.exists("0.txt") && !project.exists("69.txt"));
}

#[test]
fn an_empty_input_is_not_an_error() {
    let output = Project::empty().aye_with_input(&["mcp", "serve"], "").exits(0);
    assert_eq!(output.stdout, "");
}
