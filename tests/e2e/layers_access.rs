//! Access of commands in layers: network hosts for a single command, and the size of a layer.
#![cfg(target_os = "linux")]

use crate::support::{Answer, Project, Rpc, Server, TIMEOUT, Terminal, texts, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Web server that counts its requests.
struct Web {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Web {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.read(&mut [0; 4096]);
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Creates a project with the default approval by effects and a policy under which the user can allow this port.
/// Returns `None`, with a message, if this system does not support layers or has no curl.
fn project(server: &Server, web: &Web, limits: &str) -> Option<Project> {
    let policy = format!(
        "schema_version = 1\nextends = \"built-in\"\n[capabilities.\"Network.Http\"]\nrequires_approval = true\n\
         allowed_private_hosts = [\"127.0.0.1:{0}\"]\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n{limits}",
        web.port
    );
    let project = Project::outside_tmp_with(server).policy(&policy).approving_effects();
    // The program is outside the workspace, in a directory of `PATH`.
    let programs = project.directory("home").join("bin");
    std::fs::create_dir(&programs).unwrap();
    let fetch = format!("exec curl -sS --noproxy '' -o got.txt http://127.0.0.1:{}/$1", web.port);
    let remember = "mkdir -p ~/.mytool && echo state > ~/.mytool/state && echo done";
    for (name, text) in [("mytool", fetch.as_str()), ("remember", remember), ("note", "echo noted > ~/notes.txt && echo done")] {
        let tool = programs.join(name);
        std::fs::write(&tool, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let project = project.env("PATH", &path);
    let tier = project.aye(&["doctor", "--json"]).json()["tier"].clone();
    let has_curl = std::process::Command::new("curl").arg("--version").output().is_ok();
    if tier != "preview" || !has_curl {
        eprintln!("skipped: the sandbox is {tier}, curl: {has_curl}");
        return None;
    }
    Some(project)
}

fn script(lines: &[&str]) -> Server {
    let answers = lines.iter().enumerate().flat_map(|(at, line)| {
        let call = Answer::call(&format!("call_{at}"), "RunCommand", json!({"command": line}));
        [call, Answer::text(&format!("Finished {at}."))]
    });
    Server::new(answers)
}

fn opened(project: &Project) -> Terminal {
    let mut terminal = project.open_sized(&["--trust"], 80, 24);
    terminal.prompt("do it");
    terminal
}

#[test]
fn a_command_that_needs_a_host_reruns_in_a_fresh_layer_with_that_host() {
    for (answer, kept) in [('y', true), ('n', false)] {
        let web = Web::start();
        let line = format!("echo x >> count.txt; curl -sS --noproxy '' -o got.txt http://127.0.0.1:{}/", web.port);
        let server = script(&[&line]);
        let Some(project) = project(&server, &web, "") else { return };
        let mut terminal = opened(&project);
        let screen = terminal.review(texts::RUN_AGAIN_WITH_ACCESS);
        assert!(screen.contains(&format!("Blocked: 127.0.0.1:{}", web.port)), "{screen}");
        assert!(screen.contains("in a fresh copy") && screen.contains("Data that it sends cannot be"), "{screen}");
        assert!(web.requests() == 0 && !project.exists("count.txt"));
        terminal.decide('y');
        let screen = terminal.review("The command would change 2 files");
        assert!(screen.contains("got.txt") && screen.contains("count.txt"), "{screen}");
        assert_eq!(web.requests(), 1);
        assert!(!project.exists("got.txt") && !project.exists("count.txt"), "nothing is applied yet");
        terminal.decide(answer);
        terminal.wait_for("Finished 0.");
        assert_eq!((project.exists("got.txt"), project.exists("count.txt")), (kept, kept));
        if kept {
            assert_eq!(project.read("got.txt"), "hello\n");
            assert_eq!(project.read("count.txt"), "x\n", "nothing of the first run is used");
        }
        let told = &server.request(1).tool_results()[0].1;
        assert_eq!(told.contains("discarded"), !kept, "{told}");
        terminal.quit();
    }
}

#[test]
fn a_host_saved_for_a_command_is_allowed_only_for_that_command() {
    let web = Web::start();
    let server = script(&["mytool sync", "mytool sync", "mytool sync; true"]);
    let Some(project) = project(&server, &web, "") else { return };
    let mut terminal = opened(&project);
    terminal.review(texts::RUN_AGAIN_WITH_ACCESS);
    terminal.send("a");
    terminal.wait_for(texts::ALWAYS_ALLOW);
    let choice = |screen: &str| screen.contains("2  in this project") && !screen.contains('◔');
    let screen = terminal.wait_that("the choice takes keys", choice);
    Terminal::react();
    assert!(screen.contains("exactly `mytool sync`") && screen.contains("reaches only"), "{screen}");
    terminal.decide('2');
    terminal.review("The command would create got.txt");
    terminal.decide('y');
    terminal.wait_for("Finished 0.");
    assert_eq!((web.requests(), project.read("got.txt").as_str()), (1, "hello\n"));
    // The same command needs only the approval of its effects.
    std::fs::remove_file(project.path("got.txt")).unwrap();
    terminal.prompt("again");
    terminal.review("The command would create got.txt");
    assert_eq!(web.requests(), 2);
    terminal.decide('y');
    terminal.wait_for("Finished 1.");
    // Combined with another command, the same command has no network access.
    terminal.prompt("and more");
    terminal.review(texts::RUN_AGAIN_WITH_ACCESS);
    assert_eq!(web.requests(), 2);
    terminal.decide('n');
    terminal.wait_for("Finished 2.");
    terminal.quit();
    let check = |line: &str| {
        let call = json!({"tool": "RunCommand", "arguments": {"command": line}}).to_string();
        let told: Value = serde_json::from_str(&project.aye_with_input(&["policy", "check", "--jsonl"], &call).stdout).unwrap();
        told["hosts"].clone()
    };
    assert_eq!(check("mytool sync"), json!([format!("127.0.0.1:{}", web.port)]));
    assert_eq!(check("mytool other"), Value::Null);
}

#[test]
fn a_client_approves_the_host_and_then_the_effects() {
    let web = Web::start();
    let server = script(&["mytool sync"]);
    let Some(project) = project(&server, &web, "") else { return };
    let mut client = Rpc::start(&project, &["--trust"]);
    client.create(&project);
    client.call("StartTask", json!({"prompt": "do it"}));
    let approval = client.event("approval_requested");
    assert_eq!((&approval["opensInCopy"], &approval["opens"][0]["port"]), (&json!(true), &json!(web.port)), "{approval}");
    client.call("ApproveAction", json!({"approvalId": approval["approvalId"], "decision": "approved"}));
    let approval = client.event("approval_requested");
    assert_eq!(approval["effects"]["files"][0]["path"], "got.txt", "{approval}");
    assert!(approval["opens"].is_null() && web.requests() == 1 && !project.exists("got.txt"), "{approval}");
    client.call("ApproveAction", json!({"approvalId": approval["approvalId"], "decision": "approved"}));
    assert!(wait_until(TIMEOUT, || project.exists("got.txt")));
    assert_eq!(project.read("got.txt"), "hello\n");
    assert_eq!(client.leave(), 0);
}

#[test]
fn writes_to_the_home_directory_are_discarded_and_the_model_is_informed() {
    let web = Web::start();
    let server = script(&["remember"]);
    let Some(project) = project(&server, &web, "") else { return };
    project.aye(&["exec", "--trust", "do it"]).exits(0);
    let told = &server.request(1).tool_results()[0].1;
    assert!(told.contains("Exit code: 0") && told.contains("done"), "{told}");
    assert!(told.contains(".mytool/` outside the workspace, in a copy; this was discarded"), "{told}");
    assert!(!project.directory("home").join(".mytool").exists());
}

#[test]
fn a_command_denied_a_home_directory_write_reruns_with_exactly_that_access() {
    for (answer, made) in [('y', true), ('n', false)] {
        let web = Web::start();
        let server = script(&["note"]);
        let Some(project) = project(&server, &web, "") else { return };
        let notes = project.directory("home").join("notes.txt");
        let mut terminal = opened(&project);
        let screen = terminal.review(texts::RUN_AGAIN_WITH_ACCESS);
        assert!(screen.contains("notes.txt") && !notes.exists(), "{screen}");
        terminal.decide(answer);
        terminal.wait_for("Finished 0.");
        assert_eq!(notes.exists(), made);
        let told = &server.request(1).tool_results()[0].1;
        assert_eq!(told.contains("was not run again"), !made, "{told}");
        terminal.quit();
    }
}

#[test]
fn a_command_that_exceeds_the_layer_size_is_killed_and_its_effects_discarded() {
    let web = Web::start();
    let server = script(&["head -c 60M /dev/zero > big.bin; sleep 20"]);
    let limits = "limits = { layer_mb = 10 }\n";
    let Some(project) = project(&server, &web, limits) else { return };
    let events = project.aye(&["exec", "--trust", "--json", "do it"]).exits(0).events();
    assert_eq!(events.only("tool_completed")["error"]["code"], "TOOL_EXECUTION_FAILED");
    let told = &server.request(1).tool_results()[0].1;
    assert!(told.contains("layer_mb") && told.contains("discarded"), "{told}");
    assert!(!project.exists("big.bin"));
}
