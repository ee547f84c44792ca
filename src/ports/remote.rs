//! MCP tools: definitions and calls.

use super::BoxFuture;
use crate::protocol::{Elicitation, ElicitationAnswer, ServerPrompt, ServerResource, ServerStatus};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Maximum size in bytes of an argument schema. Tools with a larger schema are ignored, because every request contains
/// the schema.
pub(crate) const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Tool as its server offers it, or last offered it.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteTool {
    pub server: String,
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of the arguments, always an object.
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    /// Whether the server describes the tool as read-only. This claim is not verified.
    pub says_read_only: bool,
    /// Fingerprint of name, description, both schemas and hints. Any change of the tool changes it.
    pub fingerprint: String,
}

/// Call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteCall {
    pub server: String,
    pub tool: String,
    /// Fingerprint of the tool as it was judged. The call is refused if the tool has changed since.
    pub fingerprint: String,
    pub arguments: Map<String, Value>,
}

/// Channels of a running call.
#[derive(Debug, Clone)]
pub struct RemoteContext {
    /// Progress and log lines. Some may be dropped.
    pub output: mpsc::Sender<String>,
    /// Cancels the call; the server is notified.
    pub cancel: CancellationToken,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteResult {
    pub content: Vec<RemoteContent>,
    /// Structured content, as described by the output schema.
    pub structured: Option<Value>,
    /// Whether the tool ran and reported a failure.
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RemoteContent {
    Text(String),
    /// Binary content: `image/png`, `audio/wav`, or the type of a resource.
    Bytes {
        media_type: String,
        bytes: Vec<u8>,
        /// URI, for a resource.
        uri: Option<String>,
    },
    /// Text of a resource.
    Resource {
        uri: String,
        media_type: Option<String>,
        text: String,
    },
    /// Reference to a resource.
    Link {
        uri: String,
        name: String,
        description: Option<String>,
        media_type: Option<String>,
    },
}

/// Reason why a call failed. Each message contains a hint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    #[error("{message}")]
    Unreachable { message: String },
    /// The server is connected, but did not accept the call.
    #[error("{message}")]
    Busy { message: String },
    #[error("the server `{server}` requires sign-in; run `aye mcp login {server}`")]
    NeedsLogin { server: String },
    #[error("no response within {seconds} s; the server was asked to cancel")]
    TimedOut { seconds: u64 },
    #[error("stopped; the server was notified")]
    Cancelled,
    /// The connection closed during the call; it is unknown whether the call ran.
    #[error("{message}")]
    OutcomeUnknown { message: String },
    #[error("the response is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// The tool has changed since it was judged.
    #[error("{message}")]
    Changed { message: String },
    #[error("no such tool: {message}")]
    Unknown { message: String },
    /// The server returned an error, or violated the protocol.
    #[error("{message}")]
    Refused { message: String },
}

/// Configured servers of a session. Only calls and reads wait, and each only for its own server.
pub trait RemoteServers: Send + Sync {
    /// Returns the status of each server, in configuration order.
    fn statuses(&self) -> Vec<ServerStatus>;
    /// Returns a counter that changes with every change of a status or of the tools.
    fn changed(&self) -> watch::Receiver<u64>;
    /// Returns the tools of all enabled servers. A server that has not been queried yet contributes the tools that it
    /// last offered.
    fn tools(&self) -> Arc<[RemoteTool]>;
    /// Returns notes about one server, such as omitted tools with the reasons.
    fn notes(&self, server: &str) -> Vec<String> {
        let _ = server;
        Vec::new()
    }
    /// Queries every server with unknown tools, without waiting for the result.
    fn discover(&self);
    fn call(&self, call: RemoteCall, context: RemoteContext) -> BoxFuture<'_, Result<RemoteResult, RemoteError>>;
    /// Lists the resources of one server, or of all connected servers.
    fn resources<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ServerResource>, RemoteError>>;
    fn read_resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<RemoteResult, RemoteError>>;
    fn prompts(&self) -> BoxFuture<'_, Vec<ServerPrompt>>;
    /// Returns the text of a prompt.
    fn prompt<'a>(
        &'a self,
        server: &'a str,
        name: &'a str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<String, RemoteError>>;
    /// Disables servers without tools in the policy, for the given reason; all others follow the settings. Running
    /// calls are not affected.
    fn disable_unlisted(&self, off: &dyn Fn(&str) -> Option<String>) {
        let _ = off;
    }
    /// Sets the context window of the model that sees the tools, in tokens; 0 if unknown.
    fn set_context_window(&self, window_tokens: u64) {
        let _ = window_tokens;
    }
    /// Closes the connection and opens a new one.
    fn reconnect(&self, server: &str);
    /// Ends all servers; completes when their processes have exited.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// Requests that a server may send to aye. Without a user, aye declines all such requests.
pub trait RemoteAsks: Send + Sync {
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, ElicitationAnswer>;
    /// Returns directories, as `file:` URIs with names.
    fn roots(&self) -> Vec<(String, String)>;
    /// Returns whether aye offers sampling to this server.
    fn samples(&self, server: &str) -> bool {
        let _ = server;
        false
    }
    /// Sends a request to the model of the session on behalf of the server. Refused unless the policy allows it.
    fn sample(&self, server: &str, request: Value) -> BoxFuture<'_, Result<Value, String>> {
        let _ = (server, request);
        Box::pin(std::future::ready(Err("sampling is not allowed here".to_owned())))
    }
}

/// Starts the program of a server, sandboxed like a command. It ends with aye.
pub trait Launcher: Send + Sync {
    fn launch(&self, program: ServerProgram) -> BoxFuture<'_, Result<LaunchedProgram, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// Server name, for messages.
    pub server: String,
    pub argv: Vec<String>,
    /// Environment variables in addition to those of commands.
    pub environment: Vec<(String, String)>,
    /// Working directory; the workspace if absent.
    pub directory: Option<std::path::PathBuf>,
    /// Whether the user allows network access for this server, independent of commands.
    pub network: bool,
    /// Folders that it can read even if commands cannot.
    pub sees: Vec<std::path::PathBuf>,
}

/// Running program. Dropping the value ends the program and its child processes.
pub struct LaunchedProgram {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Standard error, usually logs. Bounded; output may be dropped.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Ends the program and waits until it has exited.
    pub end: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>,
}
