//! Test servers that communicate over in-memory pipes or loopback sockets.

mod asks;
mod faults;
mod http;
mod pipes;
mod web;

use super::{McpDeps, Reach, Servers, Spec};
use crate::ports::{
    BoxFuture, LaunchedProgram, Launcher, RemoteCall, RemoteContext, RemoteError, RemoteResult, RemoteServers, RemoteTool,
    ServerProgram,
};
use crate::protocol::{ServerState, ServerStatus};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Server end of the in-memory pipes.
struct Pipes {
    from: Lines<BufReader<DuplexStream>>,
    to: DuplexStream,
    beside: DuplexStream,
    /// Number of servers that were started before this one.
    before: usize,
}

impl Pipes {
    async fn next(&mut self) -> Option<Value> {
        let line = self.from.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    async fn say(&mut self, message: Value) {
        self.raw(format!("{message}\n").as_bytes()).await;
    }

    async fn raw(&mut self, bytes: &[u8]) {
        let _ = self.to.write_all(bytes).await;
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn refuse(&mut self, request: &Value, code: i64) {
        self.say(json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "no"}})).await;
    }

    /// Responds to messages until a tool call arrives, and returns the call. Returns `None` if the input ends first.
    async fn until_call(&mut self, tools: &[Value]) -> Option<Value> {
        loop {
            let request = self.next().await?;
            match request["method"].as_str().unwrap_or_default() {
                "server/discover" => self.refuse(&request, -32601).await,
                "initialize" => self.answer(&request, welcome(&request)).await,
                "tools/list" => self.answer(&request, json!({"tools": tools})).await,
                "tools/call" => return Some(request),
                _ => {}
            }
        }
    }
}

fn welcome(request: &Value) -> Value {
    json!({
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": {"tools": {"listChanged": true}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "test", "version": "1"},
    })
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "does it", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

type Script = dyn Fn(Pipes) -> BoxFuture<'static, ()> + Send + Sync;

/// Launcher that starts a task in place of a process.
struct Scripted {
    script: Box<Script>,
    started: AtomicUsize,
}

impl Launcher for Scripted {
    fn launch(&self, _: ServerProgram) -> BoxFuture<'_, Result<LaunchedProgram, String>> {
        let (input, from) = tokio::io::duplex(1 << 16);
        let (to, output) = tokio::io::duplex(1 << 16);
        let (beside, errors) = tokio::io::duplex(1 << 12);
        let before = self.started.fetch_add(1, Ordering::SeqCst);
        let pipes = Pipes { from: BufReader::new(from).lines(), to, beside, before };
        let running = tokio::spawn((self.script)(pipes));
        let stop = running.abort_handle();
        Box::pin(std::future::ready(Ok(LaunchedProgram {
            input: Box::new(input),
            output: Box::new(output),
            errors: Box::new(errors),
            end: Box::new(move || {
                stop.abort();
                Box::pin(async move {
                    let _ = running.await;
                })
            }),
        })))
    }
}

fn spec(name: &str) -> Spec {
    Spec {
        name: name.to_owned(),
        reach: Reach::Program { argv: vec!["server".to_owned()], environment: Vec::new(), directory: None, network: false },
        off: None,
        of_project: false,
        plugin: None,
        retry_attempts: 2,
        retry_delay: Duration::from_millis(100),
        start_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(30),
        tool_timeouts: Vec::new(),
    }
}

fn scripted<F: Future<Output = ()> + Send + 'static>(script: impl Fn(Pipes) -> F + Send + Sync + 'static) -> Arc<Scripted> {
    Arc::new(Scripted { script: Box::new(move |pipes| Box::pin(script(pipes))), started: AtomicUsize::new(0) })
}

fn servers<F: Future<Output = ()> + Send + 'static>(script: impl Fn(Pipes) -> F + Send + Sync + 'static) -> Servers {
    Servers::new(vec![spec("one")], McpDeps { launcher: Some(scripted(script)), ..McpDeps::default() })
}

fn status(servers: &Servers) -> ServerStatus {
    servers.statuses().remove(0)
}

/// Starts the server, and waits for the state that results.
async fn looked(servers: &Servers) -> ServerState {
    let mut changed = servers.changed();
    servers.discover();
    loop {
        match status(servers).state {
            ServerState::Asleep | ServerState::Starting => changed.changed().await.unwrap(),
            state => return state,
        }
    }
}

async fn offered(servers: &Servers, name: &str) -> RemoteTool {
    looked(servers).await;
    servers.tools().iter().find(|tool| tool.name == name).unwrap().clone()
}

fn context() -> (RemoteContext, mpsc::Receiver<String>) {
    let (output, said) = mpsc::channel(16);
    (RemoteContext { output, cancel: CancellationToken::new(), timeout: Duration::from_secs(30) }, said)
}

fn a_call(tool: &RemoteTool) -> RemoteCall {
    RemoteCall {
        server: tool.server.clone(),
        tool: tool.name.clone(),
        fingerprint: tool.fingerprint.clone(),
        arguments: json!({"a": 1}).as_object().unwrap().clone(),
    }
}

async fn call(servers: &Servers, name: &str) -> Result<RemoteResult, RemoteError> {
    let tool = offered(servers, name).await;
    servers.call(a_call(&tool), context().0).await
}
