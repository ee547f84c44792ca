//! Overhead of tool calls, for a built-in tool and for a tool of an MCP server, and the effect of configured servers on
//! startup.
//!
//! `cargo bench --profile dist --bench mcp --features fuzzing` prints one row per figure: the measured value and its
//! limit. A call is planned, evaluated and run as in a session; `benches/journal.rs` measures the cost of the journal.
//! The server is a second process of this program, connected by pipes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed measurement ends the run")]

mod start;
#[expect(dead_code, unused_imports, reason = "tests use the rest of it")]
#[path = "../tests/support/mod.rs"]
mod support;

use aye::fuzzing::Bench;
use aye::fuzzing::mcp::{BoxFuture, LaunchedProgram, Launcher, McpDeps, Reach, RemoteServers, ServerProgram, Servers, Spec};
use aye::fuzzing::protocol::ToolStatus;
use serde_json::{Value, json};
use start::until_prompt;
use std::io::{BufRead, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Project, Server as Model};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

const SERVER: &str = "--as-server";
const CALLS: usize = 2_000;
const TEXTS: [usize; 2] = [100, 100_000];
const STARTS: usize = 15;
const SERVERS: usize = 10;

fn main() {
    if std::env::args().any(|argument| argument == SERVER) {
        return serve();
    }
    println!("{:<52} {:>10} {:>10}", "figure (median)", "measured", "limit");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for bytes in TEXTS {
            let (own, through) = (read(bytes), local(bytes).await);
            row(&format!("read a file of {bytes} bytes"), own, None);
            row(&format!("ReadFile of {bytes} bytes"), through, None);
            row(&format!("overhead of a local call, {bytes} bytes"), through - own, Some(1.0));
            let (own, through) = (bare(bytes).await, remote(bytes).await);
            row(&format!("the server and its pipes alone, {bytes} bytes"), own, None);
            row(&format!("a tool of the server, {bytes} bytes"), through, None);
            row(&format!("overhead of an MCP call, {bytes} bytes"), through - own, Some(3.0));
        }
    });
    starts();
}

fn row(figure: &str, measured: f64, limit: Option<f64>) {
    let mark = if limit.is_some_and(|limit| measured > limit) { "  over" } else { "" };
    let limit = limit.map_or_else(String::new, |limit| format!("{limit:>7.2} ms"));
    println!("{figure:<52} {measured:>7.3} ms {limit}{mark}");
}

/// Measures startup with servers that never respond, alternating with startup without servers.
fn starts() {
    let model = Model::new([]);
    let policy = "schema_version = 1\n[capabilities.\"Mcp.Invoke\"]\nallowed_tools = [\"*\"]\nrequires_approval = false\n";
    let servers: Vec<String> =
        (0..SERVERS).map(|number| format!("[mcp.servers.hangs{number}]\ncommand = \"sleep\"\nargs = [\"600\"]\n")).collect();
    let without = Project::with(&model).policy(policy);
    let with = Project::with(&model).policy(policy).config(&servers.concat());
    let (mut none, mut ten) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        none.push(until_prompt(&without, &[]));
        ten.push(until_prompt(&with, &[]));
    }
    let (none, ten) = (median(none), median(ten));
    row("start to prompt, no server", none, None);
    row(&format!("start to prompt, {SERVERS} servers"), ten, None);
    // The limit of 1 ms allows for noise in both figures.
    row("added by the servers", ten - none, Some(1.0));
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

fn answer(request: &Value) -> Option<Value> {
    let result = match request["method"].as_str()? {
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "b", "version": "1"}})
        }
        "tools/list" => json!({"tools": [{"name": "say", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            let bytes = request["params"]["arguments"]["bytes"].as_u64().unwrap_or_default() as usize;
            json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]})
        }
        _ => return Some(json!({"jsonrpc": "2.0", "id": request.get("id")?, "error": {"code": -32601, "message": "no"}})),
    };
    Some(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

fn serve() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Some(answer) = serde_json::from_str(&line).ok().as_ref().and_then(answer) {
            writeln!(out, "{answer}").unwrap();
            out.flush().unwrap();
        }
    }
}

fn started() -> tokio::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.spawn().unwrap()
}

async fn bare(bytes: usize) -> f64 {
    let mut server = started();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut times = Vec::new();
    let mut line = String::new();
    for id in 0..CALLS {
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "say", "arguments": {"bytes": bytes}}});
        let began = Instant::now();
        input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        line.clear();
        output.read_line(&mut line).await.unwrap();
        times.push(began.elapsed());
    }
    median(times)
}

struct Plain;

impl Launcher for Plain {
    fn launch(&self, _: ServerProgram) -> BoxFuture<'_, Result<LaunchedProgram, String>> {
        let mut server = started();
        let (input, output, errors) =
            (server.stdin.take().unwrap(), server.stdout.take().unwrap(), server.stderr.take().unwrap());
        Box::pin(std::future::ready(Ok(LaunchedProgram {
            input: Box::new(input),
            output: Box::new(output),
            errors: Box::new(errors),
            end: Box::new(move || {
                Box::pin(async move {
                    let _ = server.kill().await;
                })
            }),
        })))
    }
}

/// Creates a workspace with one text file of `bytes` bytes.
fn workspace(bytes: usize) -> tempfile::TempDir {
    let workspace = tempfile::tempdir().unwrap();
    let text = "a line of a file, as long as most of them\n".repeat(bytes / 42 + 1);
    std::fs::write(workspace.path().join("a.txt"), &text[..bytes]).unwrap();
    workspace
}

fn read(bytes: usize) -> f64 {
    let workspace = workspace(bytes);
    let path = workspace.path().join("a.txt");
    let read = || {
        let began = Instant::now();
        std::hint::black_box(std::fs::read_to_string(&path).unwrap());
        began.elapsed()
    };
    median((0..CALLS).map(|_| read()).collect())
}

async fn local(bytes: usize) -> f64 {
    let workspace = workspace(bytes);
    let bench = Bench::new(workspace.path(), None).unwrap();
    called(&bench, "ReadFile", &json!({"path": "a.txt"})).await
}

async fn remote(bytes: usize) -> f64 {
    let spec = Spec {
        name: "bench".to_owned(),
        reach: Reach::Program { argv: vec!["bench".to_owned()], environment: Vec::new(), directory: None, network: false },
        off: None,
        of_project: false,
        plugin: None,
        retry_attempts: 0,
        retry_delay: Duration::ZERO,
        start_timeout: Duration::from_secs(10),
        call_timeout: Duration::from_secs(10),
        tool_timeouts: Vec::new(),
    };
    let servers = Arc::new(Servers::new(vec![spec], McpDeps { launcher: Some(Arc::new(Plain)), ..McpDeps::default() }));
    let mut changed = servers.changed();
    servers.discover();
    while servers.tools().is_empty() {
        changed.changed().await.unwrap();
    }
    let workspace = workspace(0);
    let bench = Bench::new(workspace.path(), Some(servers.clone())).unwrap();
    let took = called(&bench, "bench/say", &json!({"bytes": bytes})).await;
    servers.end().await;
    took
}

async fn called(bench: &Bench, tool: &str, arguments: &Value) -> f64 {
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let arguments = arguments.as_object().unwrap().clone();
        let began = Instant::now();
        let result = bench.call(tool, arguments).await.unwrap();
        times.push(began.elapsed());
        assert_eq!(result.status, ToolStatus::Succeeded, "{result:?}");
    }
    median(times)
}
