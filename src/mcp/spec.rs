//! Definition of an MCP server by the user or a trusted project.

use std::path::PathBuf;
use std::time::Duration;

/// Validated server definition. The name contains no `/`, and the URL uses `https:` or refers to loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub name: String,
    pub reach: Reach,
    /// Reason why the settings or a missing approval disable the server, if they do.
    pub off: Option<String>,
    pub of_project: bool,
    /// Files of the plugin that provides the server, if it comes from a plugin.
    pub plugin: Option<PluginFiles>,
    /// Number of times to retry connecting before the server is considered unreachable. `retry_delay` is the delay
    /// before the first retry.
    pub retry_attempts: u32,
    pub retry_delay: Duration,
    pub start_timeout: Duration,
    pub call_timeout: Duration,
    /// Tools that have a timeout of their own.
    pub tool_timeouts: Vec<(String, Duration)>,
}

/// Installed files of a plugin that provides a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFiles {
    pub name: String,
    pub root: PathBuf,
}

impl Spec {
    /// Returns whether approval must be checked each time before the server is started or contacted.
    pub fn needs_approval(&self) -> bool {
        self.of_project || self.plugin.is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    Program {
        argv: Vec<String>,
        environment: Vec<(String, String)>,
        directory: Option<PathBuf>,
        /// Whether the user allows this server to access the network, regardless of what commands may do.
        network: bool,
    },
    Http {
        url: String,
        headers: Vec<Header>,
        sign_in: SignIn,
        kind: HttpKind,
    },
}

/// Header to send with every request. Its value may be a secret and is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub value: String,
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Header").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpKind {
    /// Streamable HTTP, falling back to the older event stream if the server supports only that.
    Auto,
    Streamable,
    /// Event stream as specified by protocol version 2024-11-05.
    Sse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// No sign-in. Requests carry only the configured headers.
    None,
    /// OAuth, if the server requires it. Tokens are stored in the keyring.
    OAuth { client_id: Option<String>, scopes: Vec<String>, redirect_port: Option<u16> },
}
