//! MCP tool definitions and calls.

use super::BoxFuture;
use crate::protocol::{Elicitation, ElicitationAnswer, ServerPrompt, ServerResource, ServerStatus};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Maximum size of an argument schema, in bytes. A tool whose schema is larger is ignored, because the schema would
/// be sent with every request.
pub(crate) const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Tool, as currently or most recently offered by its server.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteTool {
    pub server: String,
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of the arguments; always an object.
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    /// Whether the server declares the tool read-only. The declaration is not verified.
    pub says_read_only: bool,
    /// Fingerprint of the tool's name, description, both schemas and hints. Any change to these changes the
    /// fingerprint.
    pub fingerprint: String,
}

/// Call to an MCP tool.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteCall {
    pub server: String,
    pub tool: String,
    /// Fingerprint of the tool when the policy judged the call. The call is refused if the tool has changed since
    /// then.
    pub fingerprint: String,
    pub arguments: Map<String, Value>,
}

/// Channels connected to a running call.
#[derive(Debug, Clone)]
pub struct RemoteContext {
    /// Progress messages and log lines. Some of them may be dropped.
    pub output: mpsc::Sender<String>,
    /// Token that cancels the call and notifies the server.
    pub cancel: CancellationToken,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteResult {
    pub content: Vec<RemoteContent>,
    /// Structured content, as described by the tool's output schema.
    pub structured: Option<Value>,
    /// Whether the tool ran but reported a failure.
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RemoteContent {
    Text(String),
    /// Binary content, such as `image/png` or `audio/wav`, or content with a resource's media type.
    Bytes {
        media_type: String,
        bytes: Vec<u8>,
        /// URI, if the content is a resource.
        uri: Option<String>,
    },
    /// Text content of a resource.
    Resource {
        uri: String,
        media_type: Option<String>,
        text: String,
    },
    /// Link to a resource.
    Link {
        uri: String,
        name: String,
        description: Option<String>,
        media_type: Option<String>,
    },
}

/// Reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    #[error("{message}")]
    Unreachable { message: String },
    /// The server is connected but did not accept the call.
    #[error("{message}")]
    Busy { message: String },
    #[error("the server `{server}` requires sign-in; run `aye mcp login {server}`")]
    NeedsLogin { server: String },
    #[error("no response within {seconds} s; the server was asked to cancel")]
    TimedOut { seconds: u64 },
    #[error("stopped; the server was notified")]
    Cancelled,
    /// The connection closed during the call, so its outcome is unknown.
    #[error("{message}")]
    OutcomeUnknown { message: String },
    #[error("the response is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    /// The tool has changed since the policy judged the call.
    #[error("{message}")]
    Changed { message: String },
    #[error("no such tool: {message}")]
    Unknown { message: String },
    /// The server returned an error or violated the protocol.
    #[error("{message}")]
    Refused { message: String },
}

/// A session's configured MCP servers. Only calls and reads may block, and each waits only for its own server.
pub trait RemoteServers: Send + Sync {
    /// Returns the status of every server, in configuration order.
    fn statuses(&self) -> Vec<ServerStatus>;
    /// Returns a counter that changes whenever a server's status or tools change.
    fn changed(&self) -> watch::Receiver<u64>;
    /// Returns the tools of all enabled servers. A server that has not been queried yet contributes the tools that it
    /// offered last time.
    fn tools(&self) -> Arc<[RemoteTool]>;
    /// Returns notes about a server, such as the reasons why tools are ignored.
    fn notes(&self, server: &str) -> Vec<String> {
        let _ = server;
        Vec::new()
    }
    /// Starts querying every server whose tools are unknown, without waiting for the results.
    fn discover(&self);
    fn call(&self, call: RemoteCall, context: RemoteContext) -> BoxFuture<'_, Result<RemoteResult, RemoteError>>;
    /// Lists the resources of the given server, or of all connected servers if `server` is `None`.
    fn resources<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ServerResource>, RemoteError>>;
    fn read_resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<RemoteResult, RemoteError>>;
    fn prompts(&self) -> BoxFuture<'_, Vec<ServerPrompt>>;
    /// Expands a server's prompt with the given arguments and returns its text.
    fn prompt<'a>(
        &'a self,
        server: &'a str,
        name: &'a str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<String, RemoteError>>;
    /// Disables each server for which `off` returns a reason, such as one whose tools are not in the policy. All
    /// other servers follow their settings. Running calls continue.
    fn disable_unlisted(&self, off: &dyn Fn(&str) -> Option<String>) {
        let _ = off;
    }
    /// Sets the context window of the model that is offered the tools, in tokens. 0 means unknown.
    fn set_context_window(&self, window_tokens: u64) {
        let _ = window_tokens;
    }
    /// Closes the server's connection and opens a new one.
    fn reconnect(&self, server: &str);
    /// Shuts down all servers. The future completes once their processes have exited.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// Handlers for requests that a server may send to aye. Without a user, aye declines all of them.
pub trait RemoteAsks: Send + Sync {
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, ElicitationAnswer>;
    /// Returns the root directories as pairs of a `file:` URI and a name.
    fn roots(&self) -> Vec<(String, String)>;
    /// Returns whether sampling is offered to this server.
    fn samples(&self, server: &str) -> bool {
        let _ = server;
        false
    }
    /// Sends a request to the session's model on behalf of a server. Fails unless the policy allows it.
    fn sample(&self, server: &str, request: Value) -> BoxFuture<'_, Result<Value, String>> {
        let _ = (server, request);
        Box::pin(std::future::ready(Err("sampling is not allowed here".to_owned())))
    }
}

/// Starts MCP server programs, sandboxed like commands. They end when aye exits.
pub trait Launcher: Send + Sync {
    fn launch(&self, program: ServerProgram) -> BoxFuture<'_, Result<LaunchedProgram, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// Server name, used in messages.
    pub server: String,
    pub argv: Vec<String>,
    /// Environment variables added to those that commands receive.
    pub environment: Vec<(String, String)>,
    /// Working directory; `None` for the workspace.
    pub directory: Option<std::path::PathBuf>,
    /// Whether the user allows network access for this server, regardless of the setting for commands.
    pub network: bool,
    /// Folders that the server can read even if commands cannot.
    pub sees: Vec<std::path::PathBuf>,
}

/// Running server program. Dropping this value terminates the program and its child processes.
pub struct LaunchedProgram {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// The program's standard error, which usually contains logs. Output beyond a limit may be dropped.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Terminates the program and waits until it has exited.
    pub end: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>,
}
