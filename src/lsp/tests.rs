//! Tests with language servers that communicate over in-memory pipes: one that behaves correctly, and one for each kind
//! of misbehaviour.

use super::framing::{MessageReader, frame};
use super::languages::Language;
use super::limits::{MISSES, QUERY_TIME, RESTART_PAUSES};
use super::{FindCommand, LanguageServers, ServerCommand};
use crate::ports::{BoxFuture, Diagnostics, LaunchedProgram, Launcher, ProposedText, ServerProgram};
use crate::protocol::FileDiagnostics;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

/// Server end of the in-memory pipes.
struct Fake {
    from: MessageReader<DuplexStream>,
    to: DuplexStream,
    errors: DuplexStream,
    /// Number of servers that were started before this one.
    before: usize,
    log: Log,
    texts: Vec<(String, i64, String)>,
}

type Log = Arc<Mutex<Vec<String>>>;

impl Fake {
    async fn next(&mut self) -> Option<Value> {
        let message: Value = serde_json::from_slice(&self.from.next().await.ok()??).unwrap();
        let method = message["method"].as_str().unwrap_or("response").to_owned();
        let document = &message["params"]["textDocument"];
        let uri = document["uri"].as_str().unwrap_or_default().to_owned();
        let version = document["version"].as_i64().unwrap_or_default();
        let text = match method.as_str() {
            "textDocument/didOpen" => document["text"].as_str(),
            "textDocument/didChange" => message["params"]["contentChanges"][0]["text"].as_str(),
            _ => None,
        };
        if let Some(text) = text {
            self.texts.retain(|(known, ..)| *known != uri);
            self.texts.push((uri.clone(), version, text.to_owned()));
        }
        let name = uri.rsplit('/').next().unwrap_or_default();
        let entry = format!("{method} {name} {}", text.unwrap_or_default().replace('\n', "|"));
        self.log.lock().unwrap().push(entry.trim().to_owned());
        Some(message)
    }

    async fn say(&mut self, message: Value) {
        let _ = self.to.write_all(&frame(message.to_string().as_bytes())).await;
    }

    async fn respond(&mut self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn publish(&mut self, uri: &str, version: Option<i64>, items: Value) {
        let mut params = json!({"uri": uri, "diagnostics": items});
        if let Some(version) = version {
            params["version"] = version.into();
        }
        self.say(json!({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params})).await;
    }

    fn errors_of(&self, uri: &str) -> Value {
        let text = self.texts.iter().find(|(known, ..)| known == uri).map_or("", |(.., text)| text);
        let bad = text.lines().enumerate().filter(|(_, line)| line.contains("BAD"));
        bad.map(|(line, text)| item(json!(line), text)).collect()
    }

    /// Performs the handshake as a server.
    async fn greet(&mut self, pulls: bool) -> Option<()> {
        let request = self.next().await?;
        assert_eq!((request["method"].as_str(), &request["params"]["processId"]), (Some("initialize"), &Value::Null));
        let capabilities = if pulls { json!({"diagnosticProvider": {}}) } else { json!({}) };
        self.respond(&request, json!({"capabilities": capabilities})).await;
        self.next().await.map(drop)
    }

    /// Runs a server that behaves in the given way.
    async fn serve(mut self, way: Way) {
        if self.greet(way == Way::Pull).await.is_none() {
            return;
        }
        while let Some(message) = self.next().await {
            let uri = message["params"]["textDocument"]["uri"].as_str().unwrap_or_default().to_owned();
            let errors = self.errors_of(&uri);
            match (message["method"].as_str().unwrap_or_default(), way) {
                ("textDocument/diagnostic", _) => self.respond(&message, json!({"kind": "full", "items": errors})).await,
                ("shutdown", _) => self.respond(&message, Value::Null).await,
                ("textDocument/didOpen" | "textDocument/didChange", Way::Push) => {
                    let version = message["params"]["textDocument"]["version"].as_i64();
                    self.publish(&uri, version, errors).await;
                }
                ("textDocument/didOpen" | "textDocument/didChange", Way::PushInSteps) => {
                    self.publish(&uri, None, json!([])).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    self.publish(&uri, None, errors).await;
                }
                _ => {}
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Pull,
    Push,
    /// Publishes diagnostics without versions and in two steps.
    PushInSteps,
}

fn item(line: Value, message: &str) -> Value {
    json!({"range": {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 1}}, "severity": 1, "message": message})
}

type Script = dyn Fn(Fake) -> BoxFuture<'static, ()> + Send + Sync;

/// Launcher that starts a task in place of a process.
struct Scripted {
    script: Box<Script>,
    started: AtomicUsize,
    ended: Arc<AtomicUsize>,
    log: Log,
}

struct CountOnDrop(Arc<AtomicUsize>);

impl Drop for CountOnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Launcher for Scripted {
    fn launch(&self, program: ServerProgram) -> BoxFuture<'_, Result<LaunchedProgram, String>> {
        assert!(!program.network);
        let (input, from) = tokio::io::duplex(1 << 16);
        let (to, output) = tokio::io::duplex(1 << 16);
        let (errors, stderr) = tokio::io::duplex(1 << 12);
        let before = self.started.fetch_add(1, Ordering::SeqCst);
        let fake = Fake { from: MessageReader::new(from), to, errors, before, log: self.log.clone(), texts: Vec::new() };
        let running = tokio::spawn((self.script)(fake));
        let killed = (running.abort_handle(), CountOnDrop(self.ended.clone()));
        let end = move || -> BoxFuture<'static, ()> {
            let (stop, _counted) = killed;
            stop.abort();
            Box::pin(async move { drop(running.await) })
        };
        let program =
            LaunchedProgram { input: Box::new(input), output: Box::new(output), errors: Box::new(stderr), end: Box::new(end) };
        Box::pin(std::future::ready(Ok(program)))
    }
}

fn scripted<F: Future<Output = ()> + Send + 'static>(script: impl Fn(Fake) -> F + Send + Sync + 'static) -> Arc<Scripted> {
    Arc::new(Scripted {
        script: Box::new(move |fake| Box::pin(script(fake))),
        started: AtomicUsize::new(0),
        ended: Arc::default(),
        log: Log::default(),
    })
}

fn servers_of(launcher: &Arc<Scripted>, languages: &'static [&'static str]) -> LanguageServers {
    let find: FindCommand =
        Arc::new(|_: &Language| Ok(ServerCommand { argv: vec!["server".to_owned()], environment: Vec::new() }));
    let uses = |language: &Language| languages.contains(&language.name);
    let roots = [PathBuf::from("/w")];
    LanguageServers::new((Path::new("/w"), &roots), uses, launcher.clone() as Arc<dyn Launcher>, find)
}

fn servers(launcher: &Arc<Scripted>) -> LanguageServers {
    servers_of(launcher, &["python"])
}

fn text(path: &str, before: Option<&str>, after: Option<&str>) -> ProposedText {
    ProposedText { path: PathBuf::from(path), before: before.map(str::to_owned), after: after.map(str::to_owned) }
}

fn change() -> Vec<ProposedText> {
    vec![text("/w/a.py", Some("fine\n"), Some("fine\nBAD one\nBAD two\n"))]
}

fn rows(found: &[FileDiagnostics]) -> Vec<String> {
    found.iter().flat_map(FileDiagnostics::rows).collect()
}

/// Resolution of timers.
const ROUNDING: Duration = Duration::from_millis(5);
const TWO_ERRORS: [&str; 2] = ["0 → 2 errors, a.py:2: BAD one (pyright-langserver)", "  a.py:3: BAD two"];

fn state(servers: &LanguageServers) -> String {
    servers.statuses().remove(0).state
}

/// Waits until the server has read all of its input.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[tokio::test(start_paused = true)]
async fn errors_before_and_after_a_change_are_reported_and_the_file_is_restored() {
    for way in [Way::Pull, Way::Push, Way::PushInSteps] {
        let launcher = scripted(move |fake| fake.serve(way));
        let servers = servers(&launcher);
        assert_eq!(launcher.started.load(Ordering::SeqCst), 0, "nothing starts before it is needed");
        assert_eq!(rows(&servers.check_proposal(change()).await), TWO_ERRORS, "{way:?}");
        settled().await;
        let log = launcher.log.lock().unwrap().clone();
        assert_eq!(log.last().map(String::as_str), Some("textDocument/didChange a.py fine|"), "{way:?}");
        // Repeat the proposal, and then save the change, whose text remains at the server.
        assert_eq!(rows(&servers.check_proposal(change()).await), TWO_ERRORS, "{way:?}");
        assert_eq!(rows(&servers.check_saved(change()).await), TWO_ERRORS, "{way:?}");
        settled().await;
        let log = launcher.log.lock().unwrap().clone();
        assert_eq!(log.last().map(String::as_str), Some("textDocument/didSave a.py"), "{way:?}");
        assert!(log[log.len() - 2].starts_with("workspace/didChangeWatchedFiles"), "{log:?}");
        let fixed = vec![text("/w/a.py", Some("fine\nBAD one\nBAD two\n"), Some("fine\nBAD two\n"))];
        assert_eq!(rows(&servers.check_proposal(fixed).await), ["2 → 1 error in a.py (pyright-langserver)"], "{way:?}");
        assert_eq!(state(&servers), "ready");
        servers.end().await;
        assert_eq!((launcher.started.load(Ordering::SeqCst), launcher.ended.load(Ordering::SeqCst)), (1, 1));
        assert!(servers.check_proposal(change()).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn all_texts_are_sent_before_the_first_request_and_new_files_are_closed() {
    let launcher = scripted(|fake| fake.serve(Way::Pull));
    let servers = servers(&launcher);
    let both = vec![
        text("/w/a.py", Some("a\n"), Some("BAD a\n")),
        text("/w/new.py", None, Some("BAD new\n")),
        text("/w/gone.py", Some("BAD gone\n"), None),
        text("/elsewhere/x.py", Some("x"), Some("BAD x")),
        text("/w/other.txt", Some("x"), Some("BAD x")),
        text("/w/large.py", Some("x"), Some(&"BAD\n".repeat(1 << 20))),
    ];
    let found = servers.check_proposal(both).await;
    let expected = [
        "0 → 1 error, a.py:1: BAD a (pyright-langserver)",
        "0 → 1 error, new.py:1: BAD new (pyright-langserver)",
        "1 → 0 errors in gone.py (pyright-langserver)",
    ];
    assert_eq!(rows(&found), expected);
    settled().await;
    let log = launcher.log.lock().unwrap().clone();
    let after = log.iter().position(|entry| entry == "textDocument/didChange a.py BAD a|").unwrap();
    assert_eq!(log[after + 1], "textDocument/didOpen new.py BAD new|");
    assert_eq!(log[after + 2], "textDocument/didClose gone.py");
    assert!(log[after + 3].starts_with("textDocument/diagnostic"), "{log:?}");
    let last: Vec<&str> = log.iter().rev().take(3).rev().map(String::as_str).collect();
    assert_eq!(
        last,
        ["textDocument/didChange a.py a|", "textDocument/didClose new.py", "textDocument/didOpen gone.py BAD gone|"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hanging_server_delays_queries_up_to_a_limit_and_then_not_at_all() {
    let launcher = scripted(|mut fake: Fake| async move {
        fake.greet(true).await;
        while fake.next().await.is_some() {}
    });
    let servers = servers(&launcher);
    for _ in 0..MISSES {
        let asked = Instant::now();
        assert!(servers.check_proposal(change()).await.is_empty());
        let elapsed = asked.elapsed();
        assert!(elapsed >= QUERY_TIME && elapsed < QUERY_TIME + ROUNDING, "{elapsed:?}");
    }
    assert!(state(&servers).starts_with("slow"), "{}", state(&servers));
    let asked = Instant::now();
    assert!(servers.check_proposal(change()).await.is_empty());
    assert!(asked.elapsed() < ROUNDING);
    // The server last received the old text.
    assert!(launcher.log.lock().unwrap().iter().all(|entry| !entry.contains("BAD")));
    // Finally, the server is restarted.
    tokio::time::sleep(Duration::from_secs(65)).await;
    assert!(state(&servers).contains("did not respond within 60 s"), "{}", state(&servers));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_responds_late_is_used_once_it_is_ready() {
    let launcher = scripted(|mut fake: Fake| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        fake.errors.write_all(b"loading\n").await.unwrap();
        fake.serve(Way::Pull).await;
    });
    let servers = servers(&launcher);
    for _ in 0..MISSES + 2 {
        assert!(servers.check_proposal(change()).await.is_empty());
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(rows(&servers.check_proposal(change()).await), TWO_ERRORS);
    assert_eq!((state(&servers).as_str(), launcher.started.load(Ordering::SeqCst)), ("ready", 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exits_is_restarted_a_few_times_and_then_stays_off() {
    let launcher = scripted(|mut fake: Fake| async move {
        fake.errors.write_all(b"panic: \x1b[31mno more memory\n\n").await.unwrap();
    });
    let servers = servers(&launcher);
    for pause in RESTART_PAUSES {
        assert!(servers.check_proposal(change()).await.is_empty());
        assert!(state(&servers).starts_with("failed: the server exited: panic: no more memory"), "{}", state(&servers));
        // During the pause, queries do not start the server.
        let started = launcher.started.load(Ordering::SeqCst);
        assert!(servers.check_proposal(change()).await.is_empty());
        assert_eq!(launcher.started.load(Ordering::SeqCst), started);
        tokio::time::sleep(pause).await;
    }
    assert!(servers.check_proposal(change()).await.is_empty());
    assert_eq!(state(&servers), "off: the server failed 4 times; last: the server exited: panic: no more memory");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(servers.check_proposal(change()).await.is_empty());
    assert_eq!((launcher.started.load(Ordering::SeqCst), launcher.ended.load(Ordering::SeqCst)), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exits_during_a_query_is_restarted_for_the_next() {
    let launcher = scripted(|mut fake: Fake| async move {
        if fake.before > 0 {
            return fake.serve(Way::Pull).await;
        }
        fake.greet(true).await;
        while fake.next().await.is_some_and(|message| message["method"] != "textDocument/diagnostic") {}
        let _ = fake.to.write_all(b"Content-Length: 500\r\n\r\n{\"jsonrpc\"").await;
    });
    let servers = servers(&launcher);
    assert!(servers.check_proposal(change()).await.is_empty());
    assert!(state(&servers).contains("in the middle of a message"), "{}", state(&servers));
    tokio::time::sleep(RESTART_PAUSES[0]).await;
    assert_eq!(rows(&servers.check_proposal(change()).await), TWO_ERRORS);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_too_much_is_stopped() {
    let launcher = scripted(|mut fake: Fake| async move {
        fake.greet(false).await;
        let line = "x".repeat(1 << 20);
        // The server sends one gigabyte in total.
        for _ in 0..1024 {
            fake.say(json!({"jsonrpc": "2.0", "method": "window/logMessage", "params": {"message": line}})).await;
        }
    });
    let servers = servers(&launcher);
    assert!(servers.check_proposal(change()).await.is_empty());
    assert!(state(&servers).contains("more than 32 MB in 10 s"), "{}", state(&servers));
    assert_eq!(launcher.ended.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn wrong_versions_and_files_from_a_server_are_ignored() {
    let launcher = scripted(|mut fake: Fake| async move {
        fake.greet(false).await;
        while let Some(message) = fake.next().await {
            let document = message["params"]["textDocument"].clone();
            let (Some(uri), Some(version)) = (document["uri"].as_str(), document["version"].as_i64()) else { continue };
            let lie = json!([item(json!(0), "a lie")]);
            for other in [0, -1, i64::MAX, version + 1, version - 1] {
                fake.publish(uri, Some(other), lie.clone()).await;
            }
            for other in ["file:///etc/passwd", "file:///w/../etc/passwd", "file:///w/b.py", "http://h/w/a.py", "", "%%%"] {
                fake.publish(other, Some(version), lie.clone()).await;
            }
            fake.say(json!({"jsonrpc": "2.0", "id": 999, "result": "for nobody"})).await;
            fake.say(json!({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": 7})).await;
            let mut items = fake.errors_of(uri);
            let positions = [json!(-5), json!(1e99), json!(u64::MAX), json!("x"), json!(4_000_000_000_u32)];
            items.as_array_mut().unwrap().extend(positions.map(|line| item(line, "a lie")));
            fake.publish(uri, Some(version), items).await;
        }
    });
    let servers = servers(&launcher);
    assert_eq!(rows(&servers.check_proposal(change()).await), TWO_ERRORS);
}

#[tokio::test(start_paused = true)]
async fn a_server_with_another_protocol_is_stopped_with_the_reason() {
    let launcher = scripted(|mut fake: Fake| async move {
        if fake.before == 0 {
            let _ = fake.to.write_all(b"usage server [OPTIONS]\n\n").await;
        } else {
            let _ = fake.to.write_all(&frame(b"[1, 2, {{{")).await;
        }
        while fake.next().await.is_some() {}
    });
    let servers = servers(&launcher);
    assert!(servers.check_proposal(change()).await.is_empty());
    assert!(state(&servers).contains("not a message of the Language Server Protocol"), "{}", state(&servers));
    tokio::time::sleep(RESTART_PAUSES[0]).await;
    assert!(servers.check_proposal(change()).await.is_empty());
    assert!(state(&servers).contains("not valid JSON-RPC"), "{}", state(&servers));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_is_stopped() {
    let launcher = scripted(|mut fake: Fake| async move {
        fake.greet(true).await;
        std::future::pending::<()>().await;
    });
    let servers = servers(&launcher);
    assert!(servers.check_proposal(change()).await.is_empty());
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert!(state(&servers).contains("did not respond"), "{}", state(&servers));
    assert_eq!(launcher.ended.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn server_requests_get_responses_and_change_nothing() {
    let launcher = scripted(|mut fake: Fake| async move {
        fake.greet(true).await;
        let requests = [
            ("workspace/configuration", json!({"items": [{}, {}]}), json!([null, null])),
            ("workspace/applyEdit", json!({"edit": {}}), json!({"applied": false})),
            ("window/showDocument", json!({"uri": "http://h"}), json!({"success": false})),
            ("client/registerCapability", json!({"registrations": []}), Value::Null),
        ];
        for (method, params, expected) in requests {
            fake.say(json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params})).await;
            let answer = loop {
                let message = fake.next().await.unwrap();
                if message["id"] == method {
                    break message;
                }
            };
            assert_eq!(answer["result"], expected, "{method}");
        }
        fake.say(json!({"jsonrpc": "2.0", "id": 7, "method": "workspace/own"})).await;
        fake.errors.write_all(b"all answered\n").await.unwrap();
    });
    let servers = servers(&launcher);
    assert!(servers.check_proposal(change()).await.is_empty());
    assert!(state(&servers).contains("all answered"), "{}", state(&servers));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reports_loading_is_queried_only_afterwards() {
    let launcher = scripted(|mut fake: Fake| async move {
        fake.greet(true).await;
        let status = |quiet: bool| json!({"jsonrpc": "2.0", "method": "experimental/serverStatus", "params": {"health": "ok", "quiescent": quiet}});
        fake.say(status(false)).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(fake.log.lock().unwrap().iter().all(|entry| !entry.starts_with("textDocument")));
        fake.say(status(true)).await;
        // Continue as a correct server that has already completed the handshake.
        while let Some(message) = fake.next().await {
            let uri = message["params"]["textDocument"]["uri"].as_str().unwrap_or_default().to_owned();
            if message["method"] == "textDocument/diagnostic" {
                let errors = fake.errors_of(&uri);
                fake.respond(&message, json!({"items": errors})).await;
            }
        }
    });
    let servers = servers_of(&launcher, &["rust"]);
    let change = || vec![text("/w/a.rs", Some("fine\n"), Some("BAD\n"))];
    assert!(servers.check_proposal(change()).await.is_empty());
    assert_eq!(state(&servers), "starting");
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(rows(&servers.check_proposal(change()).await), ["0 → 1 error, a.rs:1: BAD (rust-analyzer)"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_program_turns_the_server_off_with_the_reason() {
    let launcher = scripted(|fake| fake.serve(Way::Pull));
    let find: FindCommand = Arc::new(|_: &Language| Err("`gopls` was not found in PATH".to_owned()));
    let roots = [PathBuf::from("/w")];
    let servers = LanguageServers::new((Path::new("/w"), &roots), |language| language.name == "go", launcher.clone() as _, find);
    assert!(state(&servers).starts_with("not started"));
    for _ in 0..3 {
        let change = vec![text("/w/a.go", Some("fine\n"), Some("BAD\n"))];
        assert!(servers.check_proposal(change).await.is_empty());
    }
    assert_eq!((state(&servers).as_str(), launcher.started.load(Ordering::SeqCst)), ("off: `gopls` was not found in PATH", 0));
}
