//! The tools of MCP servers: what they offer, and calls to them.

use super::BoxFuture;
use crate::protocol::{Elicitation, ElicitationAnswer, ServerPrompt, ServerResource, ServerStatus};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// A tool whose schema of arguments is larger is left out: the model would be sent it with every request.
pub const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// A tool as its server offers it, or offered it last.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteTool {
    pub server: String,
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of the arguments; an object.
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    /// It says of itself that it changes nothing. Only a word of the server.
    pub says_read_only: bool,
    /// Of name, description, both schemas and hints: another one is another tool.
    pub fingerprint: String,
}

/// One call of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteCall {
    pub server: String,
    pub tool: String,
    /// Of the tool that was judged: one that is another by now is not called.
    pub fingerprint: String,
    pub arguments: Map<String, Value>,
}

/// What a call is given while it runs.
#[derive(Debug, Clone)]
pub struct RemoteContext {
    /// Progress and log lines, lossy.
    pub output: mpsc::Sender<String>,
    /// Fires when the call is to be cancelled: the server is told so.
    pub cancel: CancellationToken,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RemoteResult {
    pub content: Vec<RemoteContent>,
    /// What an output schema speaks of.
    pub structured: Option<Value>,
    /// The tool ran and says that it failed.
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RemoteContent {
    Text(String),
    /// `image/png`, `audio/wav`, or what a blob of a resource is.
    Bytes {
        media_type: String,
        bytes: Vec<u8>,
        /// Of a resource.
        uri: Option<String>,
    },
    /// The text of a resource.
    Resource {
        uri: String,
        media_type: Option<String>,
        text: String,
    },
    /// Only where it is.
    Link {
        uri: String,
        name: String,
        description: Option<String>,
        media_type: Option<String>,
    },
}

/// Why nothing came of it. Each says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    #[error("{message}")]
    Unreachable { message: String },
    #[error("the server `{server}` requires sign-in; run `aye mcp login {server}`")]
    NeedsLogin { server: String },
    #[error("no response within {seconds} s; the server was told to stop")]
    TimedOut { seconds: u64 },
    #[error("stopped; the server was notified")]
    Cancelled,
    /// The server went away with the call: nobody knows whether it ran.
    #[error("{message}")]
    OutcomeUnknown { message: String },
    #[error("the response has more than {limit} bytes")]
    TooLarge { limit: u64 },
    /// It is not the tool that was judged.
    #[error("{message}")]
    Changed { message: String },
    #[error("no such tool: {message}")]
    Unknown { message: String },
    /// The server's own error, or one against the protocol.
    #[error("{message}")]
    Refused { message: String },
}

/// The configured servers of one session. Nothing of it waits for a server but what a call or a read asks of that one.
pub trait RemoteServers: Send + Sync {
    /// How each stands now, in the order of the configuration.
    fn statuses(&self) -> Vec<ServerStatus>;
    /// Changes whenever a status or the tools do.
    fn changed(&self) -> watch::Receiver<u64>;
    /// Of all servers that are on: as they offer them, or, where one was not asked yet, as it offered them last.
    fn tools(&self) -> Arc<[RemoteTool]>;
    /// What is to be known of one server beside its status: tools that were left out, and why.
    fn notes(&self, server: &str) -> Vec<String> {
        let _ = server;
        Vec::new()
    }
    /// Learns what is not known yet: asks every server whose tools nobody knows. Comes back at once.
    fn look(&self);
    fn call(&self, call: RemoteCall, context: RemoteContext) -> BoxFuture<'_, Result<RemoteResult, RemoteError>>;
    /// Of one server, or of all that are up.
    fn resources<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, Result<Vec<ServerResource>, RemoteError>>;
    fn read_resource<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<RemoteResult, RemoteError>>;
    fn prompts(&self) -> BoxFuture<'_, Vec<ServerPrompt>>;
    /// What is to be said, as one text.
    fn prompt<'a>(
        &'a self,
        server: &'a str,
        name: &'a str,
        arguments: Map<String, Value>,
    ) -> BoxFuture<'a, Result<String, RemoteError>>;
    /// Which are off because the policy lists none of their tools, and why; all others are as the settings have them. Calls that run
    /// end as they do.
    fn keep_off(&self, off: &dyn Fn(&str) -> Option<String>) {
        let _ = off;
    }
    /// The model that is told of the tools has a window of so many tokens; 0 where nobody knows.
    fn told_to(&self, window_tokens: u64) {
        let _ = window_tokens;
    }
    /// Ends the connection and makes a new one.
    fn reconnect(&self, server: &str);
    /// Ends all of them; ready once their processes are gone.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// What a server may ask while it is used. Without a person everything is declined.
pub trait RemoteAsks: Send + Sync {
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, ElicitationAnswer>;
    /// Directories, as `file:` URIs with a name each.
    fn roots(&self) -> Vec<(String, String)>;
    /// Whether this server is told that it may ask for sampling at all.
    fn samples(&self, server: &str) -> bool {
        let _ = server;
        false
    }
    /// A request to the model of the session, on the server's behalf; refused unless the policy allows it.
    fn sample(&self, server: &str, request: Value) -> BoxFuture<'_, Result<Value, String>> {
        let _ = (server, request);
        Box::pin(std::future::ready(Err("sampling is not allowed here".to_owned())))
    }
}

/// Starts the program of a server: held like a command of the policy, and gone with aye.
pub trait Launcher: Send + Sync {
    fn launch(&self, program: ServerProgram) -> BoxFuture<'_, Result<Launched, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// For messages.
    pub server: String,
    pub argv: Vec<String>,
    /// On top of the environment that commands have.
    pub environment: Vec<(String, String)>,
    /// The workspace where none is said.
    pub directory: Option<std::path::PathBuf>,
    /// The person lets it reach the network, whatever commands may.
    pub network: bool,
}

/// A program that runs. Dropping it ends all that it started.
pub struct Launched {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// What it writes beside: logs. Bounded, lossy.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
    /// Ends it and waits until it is gone.
    pub end: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>,
}
