//! Connection to a running language server: requests, notifications, and the diagnostics that it publishes.

use super::framing::{MessageReader, frame};
use super::limits::{
    END_TIME, MESSAGE_START_BYTES, REASON_CELLS, RETRY_PAUSE, SETTLE_TIME, SHUTDOWN_TIME, STDERR_BYTES, UNREAD_MESSAGES,
};
use super::uri;
use crate::ports::{BoxFuture, LaunchedProgram};
use crate::text::{self, file_uri};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// Error codes with which a server asks for a request to be repeated, because the content changed or the server
/// cancelled it.
const REPEAT: [i64; 2] = [-32_801, -32_802];
const METHOD_NOT_FOUND: i64 = -32_601;

type End = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;
type Response = Result<Value, ErrorBody>;

/// Message from a server. A request has both an ID and a method, whereas a response has only an ID.
#[derive(Deserialize)]
struct ServerMessage<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorBody>,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

/// Diagnostics that were published for a file.
#[derive(Debug, Clone)]
struct Published {
    /// Version of the text to which they apply. Absent for servers that do not report versions.
    version: Option<i64>,
    items: Vec<Value>,
    /// Value of the `changed` counter when they were published.
    at: u64,
}

/// Connection to a running server. Dropping it ends the server process.
pub(super) struct LspConnection {
    outgoing: mpsc::Sender<Vec<u8>>,
    shared: Arc<ConnectionState>,
    next_id: AtomicI64,
    tasks: [AbortHandle; 3],
}

struct ConnectionState {
    /// Settings that the server can request.
    settings: Value,
    root_uri: String,
    pending: Mutex<HashMap<i64, oneshot::Sender<Response>>>,
    /// Diagnostics of open files. Those of other files are ignored, because a server could otherwise fill the memory.
    published: Mutex<HashMap<PathBuf, Option<Published>>>,
    /// Number of times that diagnostics were published or the state changed.
    changed: watch::Sender<u64>,
    /// Whether the server has reported that it has finished loading the project.
    loaded: Mutex<bool>,
    /// Reason why the server ended, if it has.
    ended: Mutex<Option<String>>,
    stderr: Mutex<Vec<u8>>,
    end: Mutex<Option<End>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LspConnection {
    /// Starts communicating with a server program.
    pub(super) fn new(program: LaunchedProgram, settings: Value, root: &Path) -> Self {
        let LaunchedProgram { input, output, errors, end } = program;
        let shared = Arc::new(ConnectionState {
            settings,
            root_uri: file_uri(root),
            pending: Mutex::default(),
            published: Mutex::default(),
            changed: watch::Sender::new(0),
            loaded: Mutex::new(false),
            ended: Mutex::new(None),
            stderr: Mutex::default(),
            end: Mutex::new(Some(end)),
        });
        let (outgoing, queue) = mpsc::channel(UNREAD_MESSAGES);
        let tasks = [
            tokio::spawn(read(Arc::clone(&shared), output, outgoing.clone())).abort_handle(),
            tokio::spawn(write(input, queue)).abort_handle(),
            tokio::spawn(read_stderr(Arc::clone(&shared), errors)).abort_handle(),
        ];
        Self { outgoing, shared, next_id: AtomicI64::new(1), tasks }
    }

    /// Returns the reason why the connection ended, or `None` if it is open.
    pub(super) fn end_reason(&self) -> Option<String> {
        lock(&self.shared.ended).clone()
    }

    /// Sends a notification to the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has ended or is not reading its input.
    pub(super) fn notify(&self, method: &str, params: &Value) -> Result<(), String> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// Sends a request and waits for the response. If the server asks for it, the request is repeated.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has ended, is not reading its input, or rejected the request.
    pub(super) async fn request(&self, method: &str, params: &Value) -> Result<Value, String> {
        loop {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            let (tell, told) = oneshot::channel();
            lock(&self.shared.pending).insert(id, tell);
            let _forget = PendingRequestGuard { shared: &self.shared, id };
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
            match told.await {
                Ok(Ok(result)) => return Ok(result),
                Ok(Err(error)) if REPEAT.contains(&error.code) => tokio::time::sleep(RETRY_PAUSE).await,
                Ok(Err(error)) => {
                    return Err(format!("the server refused `{method}`: {}", shorten(&error.message)));
                }
                Err(_) => return Err(self.lost()),
            }
        }
    }

    fn send(&self, message: &Value) -> Result<(), String> {
        if let Some(reason) = self.end_reason() {
            return Err(reason);
        }
        self.outgoing.try_send(frame(message.to_string().as_bytes())).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => "the server does not read its input".to_owned(),
            mpsc::error::TrySendError::Closed(_) => self.lost(),
        })
    }

    fn lost(&self) -> String {
        self.end_reason().unwrap_or_else(|| "the server closed its input".to_owned())
    }

    /// Starts recording diagnostics for a file that is about to be opened.
    pub(super) fn follow(&self, path: &Path) {
        lock(&self.shared.published).insert(path.to_owned(), None);
    }

    pub(super) fn unfollow(&self, path: &Path) {
        lock(&self.shared.published).remove(path);
    }

    /// Returns the current value of the change counter. Diagnostics without a version that were published up to this
    /// point belong to an older text.
    pub(super) fn mark(&self) -> u64 {
        *self.shared.changed.borrow()
    }

    /// Waits until diagnostics are published for this version of a file. If the server does not report versions, waits
    /// until diagnostics are published after `mark`.
    pub(super) async fn published(&self, path: &Path, version: i64, mark: u64) -> Result<Vec<Value>, String> {
        let mut changed = self.shared.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(reason) = self.end_reason() {
                return Err(reason);
            }
            let published = lock(&self.shared.published).get(path).cloned().flatten();
            let current = published.filter(|published| published.version.map_or(published.at > mark, |of| of == version));
            let next = match current {
                Some(Published { version: Some(_), items, .. }) => return Ok(items),
                // A server without versions may publish in several steps, for example syntax errors before type errors.
                Some(Published { items, .. }) => match tokio::time::timeout(SETTLE_TIME, changed.changed()).await {
                    Ok(next) => next,
                    Err(_) => return Ok(items),
                },
                None => changed.changed().await,
            };
            if next.is_err() {
                return Err(self.lost());
            }
        }
    }

    /// Waits until the server reports that it has finished loading the project.
    pub(super) async fn loaded(&self) -> Result<(), String> {
        let mut changed = self.shared.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(reason) = self.end_reason() {
                return Err(reason);
            }
            if *lock(&self.shared.loaded) {
                return Ok(());
            }
            if changed.changed().await.is_err() {
                return Err(self.lost());
            }
        }
    }

    /// Asks the server to exit, and then ends the process.
    pub(super) async fn end(&self) {
        if self.end_reason().is_none() {
            let _ = tokio::time::timeout(SHUTDOWN_TIME, self.request("shutdown", &Value::Null)).await;
            let _ = self.notify("exit", &Value::Null);
        }
        self.shared.kill("the server was stopped".to_owned()).await;
    }
}

impl Drop for LspConnection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
        // Dropping the function kills the process.
        drop(lock(&self.shared.end).take());
    }
}

/// Guard that removes a pending request once nothing waits for its response any more.
struct PendingRequestGuard<'a> {
    shared: &'a ConnectionState,
    id: i64,
}

impl Drop for PendingRequestGuard<'_> {
    fn drop(&mut self) {
        lock(&self.shared.pending).remove(&self.id);
    }
}

impl ConnectionState {
    fn tick(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Ends the process, and wakes all callers that are waiting.
    async fn kill(&self, reason: String) {
        lock(&self.ended).get_or_insert(reason);
        lock(&self.pending).clear();
        self.tick();
        let end = lock(&self.end).take();
        if let Some(end) = end {
            let _ = tokio::time::timeout(END_TIME, end()).await;
        }
    }

    /// Handles a message. If it is a request, returns the response to be sent.
    fn handle(&self, body: &[u8]) -> Result<Option<Value>, String> {
        let message: ServerMessage<'_> =
            serde_json::from_slice(body).map_err(|_| "the server sent a message that is not valid JSON-RPC".to_owned())?;
        match (message.method, message.id) {
            (Some(method), Some(id)) => {
                let id: Value = serde_json::from_str(id.get()).unwrap_or_default();
                Ok(Some(self.respond(&method, message.params, &id)))
            }
            (Some(method), None) => {
                self.on_notification(&method, message.params);
                Ok(None)
            }
            (None, Some(id)) => {
                let waiting = id.get().parse::<i64>().ok().and_then(|id| lock(&self.pending).remove(&id));
                if let Some(waiting) = waiting {
                    let result = message.result.and_then(|result| serde_json::from_str(result.get()).ok()).unwrap_or_default();
                    // If nobody waits any longer, the response was too late.
                    let _ = waiting.send(message.error.map_or(Ok(result), Err));
                }
                Ok(None)
            }
            (None, None) => Ok(None),
        }
    }

    fn on_notification(&self, method: &str, params: Option<&RawValue>) {
        let params = || -> Option<Value> { serde_json::from_str(params?.get()).ok() };
        match method {
            "textDocument/publishDiagnostics" => {
                let Some(mut params) = params() else { return };
                let path = params.get("uri").and_then(Value::as_str).and_then(uri::to_path);
                let version = params.get("version").and_then(Value::as_i64);
                let Some(Value::Array(items)) = params.get_mut("diagnostics").map(Value::take) else { return };
                let at = *self.changed.borrow() + 1;
                let mut published = lock(&self.published);
                if let Some(known) = path.and_then(|path| published.get_mut(&path)) {
                    *known = Some(Published { version, items, at });
                    drop(published);
                    self.tick();
                }
            }
            "experimental/serverStatus" => {
                let quiet = params().and_then(|params| params.get("quiescent").and_then(Value::as_bool));
                if let Some(quiet) = quiet {
                    *lock(&self.loaded) = quiet;
                    self.tick();
                }
            }
            _ => {}
        }
    }

    /// Returns the response to a request from the server. aye never makes changes on a server's behalf.
    fn respond(&self, method: &str, params: Option<&RawValue>, id: &Value) -> Value {
        let result = match method {
            "workspace/configuration" => {
                let params: Value = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
                let count = params.get("items").and_then(Value::as_array).map_or(0, Vec::len);
                Some(Value::Array(vec![self.settings.clone(); count.min(UNREAD_MESSAGES)]))
            }
            "workspace/workspaceFolders" => Some(json!([{ "uri": self.root_uri, "name": "workspace" }])),
            "workspace/applyEdit" => Some(json!({ "applied": false })),
            "window/showDocument" => Some(json!({ "success": false })),
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/showMessageRequest"
            | "window/workDoneProgress/create"
            | "workspace/diagnostic/refresh"
            | "workspace/semanticTokens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/codeLens/refresh" => Some(Value::Null),
            _ => None,
        };
        if let Some(result) = result {
            return json!({ "jsonrpc": "2.0", "id": id, "result": result });
        }
        let error = json!({ "code": METHOD_NOT_FOUND, "message": "not supported" });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }

    /// Returns the line of standard error output that most likely says why the server exited.
    fn last_line(&self) -> Option<String> {
        let kept = lock(&self.stderr);
        let text = String::from_utf8_lossy(&kept);
        exit_reason(&text).map(shorten)
    }
}

/// Returns the last line that contains `Error`, or otherwise the last line. Ignores stack traces, and the version with
/// which Node.js ends its output.
fn exit_reason(text: &str) -> Option<&str> {
    let is_noise = |line: &str| {
        line.is_empty()
            || line.starts_with("at ")
            || line.starts_with("Node.js v")
            || line.chars().all(|letter| "^~{}".contains(letter))
    };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !is_noise(line)).collect();
    let error = lines.iter().rev().find(|line| line.contains("Error") && !line.starts_with("throw "));
    error.or(lines.last()).copied()
}

/// Formats text from a server as a single, sanitized line of limited length.
pub(super) fn shorten(message: &str) -> String {
    let mut end = message.len().min(MESSAGE_START_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    text::truncate(&text::clean_line(&message[..end]), REASON_CELLS).into_owned()
}

/// Reads messages until the output ends or becomes invalid, and then ends the process.
async fn read(shared: Arc<ConnectionState>, output: Box<dyn AsyncRead + Send + Unpin>, outgoing: mpsc::Sender<Vec<u8>>) {
    let mut messages = MessageReader::new(output);
    let reason = loop {
        let body = match messages.next().await {
            Ok(Some(body)) => body,
            Ok(None) => {
                // The last output on standard error may not have arrived yet.
                tokio::time::sleep(SETTLE_TIME).await;
                break shared
                    .last_line()
                    .map_or_else(|| "the server exited".to_owned(), |line| format!("the server exited: {line}"));
            }
            Err(reason) => break reason,
        };
        match shared.handle(&body) {
            Ok(None) => {}
            Ok(Some(response)) => {
                if outgoing.try_send(frame(response.to_string().as_bytes())).is_err() {
                    break "the server does not read its input".to_owned();
                }
            }
            Err(reason) => break reason,
        }
    };
    shared.kill(reason).await;
}

async fn write(mut input: Box<dyn AsyncWrite + Send + Unpin>, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = queue.recv().await {
        // The reader notices the exit of the server.
        if input.write_all(&bytes).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

/// Reads everything that the server writes to standard error, so that it never blocks, and keeps the end of it.
async fn read_stderr(shared: Arc<ConnectionState>, mut errors: Box<dyn AsyncRead + Send + Unpin>) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut chunk).await {
        let mut kept = lock(&shared.stderr);
        kept.extend_from_slice(&chunk[..count]);
        let surplus = kept.len().saturating_sub(STDERR_BYTES);
        kept.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_for_an_exit_is_the_error_and_not_the_version_or_the_stack() {
        let node = "/x/a.js:3\n    throw new Error('m')\n    ^\n\nError: cannot find module 'x'\n    at f (a.js:3:7)\n\n\
                    Node.js v20.20.2\n";
        assert_eq!(exit_reason(node), Some("Error: cannot find module 'x'"));
        assert_eq!(exit_reason("starting\npanic: no more memory\n\n"), Some("panic: no more memory"));
        assert_eq!(exit_reason("Node.js v20.20.2\n"), None);
    }
}
