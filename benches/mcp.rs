//! What a call to an MCP server costs over the own time of the server and its pipes.
//!
//! `cargo bench --bench mcp --features fuzzing` prints one row a figure: the measured value and the limit it is meant to hold. The server
//! is this program itself, started again, at the other end of real pipes.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use aye::fuzzing::mcp::{
    BoxFuture, Launched, Launcher, Reach, RemoteCall, RemoteContext, RemoteServers, ServerProgram, Servers, Spec, Wires,
};
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

const SERVER: &str = "--as-server";
const CALLS: usize = 2_000;
const TEXTS: [usize; 2] = [100, 100_000];

fn main() {
    if std::env::args().any(|argument| argument == SERVER) {
        return serve();
    }
    println!("{:<52} {:>10} {:>10}", "figure (median)", "measured", "limit");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for bytes in TEXTS {
            let own = bare(bytes).await;
            let through = through_the_client(bytes).await;
            row(&format!("the pipes and the server alone, {bytes} bytes"), own, f64::NAN);
            row(&format!("the same call through the client, {bytes} bytes"), through, f64::NAN);
            row(&format!("what the client adds, {bytes} bytes"), through - own, 3.0);
        }
    });
}

fn row(figure: &str, measured: f64, limit: f64) {
    let mark = if measured > limit { "  over" } else { "" };
    println!("{figure:<52} {measured:>7.3} ms {limit:>7.2} ms{mark}");
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
    fn launch(&self, _: ServerProgram) -> BoxFuture<'_, Result<Launched, String>> {
        let mut server = started();
        let (input, output, errors) =
            (server.stdin.take().unwrap(), server.stdout.take().unwrap(), server.stderr.take().unwrap());
        Box::pin(std::future::ready(Ok(Launched {
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

async fn through_the_client(bytes: usize) -> f64 {
    let spec = Spec {
        name: "bench".to_owned(),
        reach: Reach::Program { argv: vec!["bench".to_owned()], environment: Vec::new(), directory: None, network: false },
        off: None,
        of_project: false,
        retry_attempts: 0,
        retry_delay: Duration::ZERO,
        start_timeout: Duration::from_secs(10),
        call_timeout: Duration::from_secs(10),
        tool_timeouts: Vec::new(),
    };
    let servers = Servers::new(vec![spec], Wires { launcher: Some(Arc::new(Plain)), ..Wires::default() });
    let mut changed = servers.changed();
    servers.look();
    while servers.tools().is_empty() {
        changed.changed().await.unwrap();
    }
    let tool = servers.tools()[0].clone();
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let (output, _unread) = tokio::sync::mpsc::channel(1);
        let call = RemoteCall {
            server: tool.server.clone(),
            tool: tool.name.clone(),
            fingerprint: tool.fingerprint.clone(),
            arguments: json!({"bytes": bytes}).as_object().unwrap().clone(),
        };
        let context = RemoteContext { output, cancel: CancellationToken::new(), timeout: Duration::from_secs(10) };
        let began = Instant::now();
        servers.call(call, context).await.unwrap();
        times.push(began.elapsed());
    }
    servers.end().await;
    median(times)
}
