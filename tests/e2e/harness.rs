//! Test harness: a terminal that responds to queries, a scripted model, a count of processes.

use crate::support::{Answer, Project, Server, Terminal, texts};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// Starts a shell with this script in a terminal. Returns its project too, which must outlive the terminal.
fn shell(script: &str) -> (Project, Terminal) {
    let project = Project::empty();
    let terminal = project.open_program("bash", &["-c", script]);
    (project, terminal)
}

#[test]
fn the_test_terminal_responds_to_queries() {
    let questions = [("\\033[5n", "[0n", 4), ("\\033[6n", "[1;1R", 6), ("\\033]11;?\\033\\\\", "]11;rgb:1010/1010/1010", 24)];
    for (question, answer, length) in questions {
        let script = format!("stty raw -echo; printf '{question}'; dd bs=1 count={length} 2>/dev/null | tr -d '\\033'; sleep 5");
        let (_project, mut terminal) = shell(&script);
        terminal.wait_for(answer);
    }
}

#[test]
fn the_test_terminal_tracks_screen_and_cursor_modes() {
    let (_project, mut terminal) = shell("printf '\\033[?1049h\\033[?25lhere'; read -r _; printf '\\033[?1049l\\033[?25h'");
    terminal.wait_for("here");
    terminal.send("\r");
    assert!(terminal.finish().success());
    terminal.assert_restored();
}

#[test]
#[should_panic(expected = "line settings")]
fn changed_line_settings_are_detected() {
    let (_project, mut terminal) = shell("stty raw");
    terminal.finish();
    terminal.assert_restored();
}

#[test]
#[should_panic(expected = "a mode is left on")]
fn a_cursor_left_hidden_is_detected() {
    let (_project, mut terminal) = shell("printf '\\033[?25lgone'");
    terminal.wait_for("gone");
    terminal.finish();
    terminal.assert_restored();
}

/// Sends one request to the server and returns the complete response.
fn ask(server: &Server, path: &str, body: &Value) -> String {
    let address = server.url();
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn the_test_server_responds_in_both_protocols_and_records_requests() {
    let call = || Answer::text("words").and_call("call_1", "ReadFile", json!({"path": "a"}));
    let server = Server::new([call(), call(), Answer::error(429, "rate_limit_error", "slow").with_header("retry-after", "7")]);
    let anthropic = ask(&server, "/v1/messages", &json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}));
    for part in ["event: message_start", "\"text_delta\"", "\"words\"", "\"tool_use\"", "event: message_stop", "0\r\n\r\n"] {
        assert!(anthropic.contains(part), "{part} is missing in {anthropic}");
    }
    let results = json!([{"role": "tool", "tool_call_id": "call_1", "content": "alpha"}]);
    let chat = ask(&server, "/v1/chat/completions", &json!({"model": "m", "messages": results}));
    for part in ["\"content\":\"words\"", "\"tool_calls\"", "[DONE]"] {
        assert!(chat.contains(part), "{part} is missing in {chat}");
    }
    let limited = ask(&server, "/v1/messages", &json!({}));
    assert!(limited.starts_with("HTTP/1.1 429") && limited.contains("retry-after: 7"), "{limited}");
    assert!(ask(&server, "/v1/messages", &json!({})).contains("no more answers"));
    assert_eq!(server.requests().len(), 4);
    assert!(server.request(0).messages().contains("hi"));
    assert_eq!(server.request(1).tool_results(), [("call_1".to_owned(), "alpha".to_owned())]);
}

#[test]
fn truncated_streams_have_no_final_event() {
    let server = Server::new([Answer::text("half").then_dropped(), Answer::text("half").then_short()]);
    let dropped = ask(&server, "/v1/messages", &json!({}));
    assert!(dropped.contains("half") && !dropped.contains("message_stop") && !dropped.ends_with("0\r\n\r\n"), "{dropped}");
    let short = ask(&server, "/v1/messages", &json!({}));
    assert!(short.contains("half") && !short.contains("message_stop") && short.ends_with("0\r\n\r\n"), "{short}");
}

#[cfg(target_os = "linux")]
#[test]
fn processes_are_counted_by_their_whole_command_line() {
    use crate::support::{TIMEOUT, processes_running, wait_until};
    let seconds = format!("6164.{}", std::process::id());
    let mut child = std::process::Command::new("sleep").arg(&seconds).spawn().unwrap();
    assert!(wait_until(TIMEOUT, || processes_running(&["sleep", &seconds]) == 1));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(processes_running(&["sleep", &seconds]), 0);
}

/// Returns all sources below `directory`, with the line continuations in strings removed.
fn sources(directory: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let source = std::fs::read_to_string(path).unwrap();
            let mut lines = source.split("\\\n");
            text.push_str(lines.next().unwrap_or_default());
            lines.for_each(|line| text.push_str(line.trim_start()));
        }
    }
    text
}

#[test]
fn every_string_in_the_table_occurs_in_the_program() {
    let product = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let missing: Vec<_> = texts::ALL.iter().filter(|text| !product.contains(**text)).collect();
    assert!(missing.is_empty(), "changed in the program, but not in tests/support/texts.rs: {missing:?}");
}
