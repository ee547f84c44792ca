//! Server description by the user or a trusted project.

use std::path::PathBuf;
use std::time::Duration;

/// Validated server. Its name contains no `/`, and its URL is `https:` or on loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub name: String,
    pub reach: Reach,
    /// Reason why the settings or a missing approval disable the server, if any.
    pub off: Option<String>,
    pub of_project: bool,
    /// Plugin to which the server belongs, if any.
    pub plugin: Option<PluginFiles>,
    /// Number of connection retries before the server counts as unreachable. `retry_delay` is the first delay.
    pub retry_attempts: u32,
    pub retry_delay: Duration,
    pub start_timeout: Duration,
    pub call_timeout: Duration,
    /// Tools with their own timeout.
    pub tool_timeouts: Vec<(String, Duration)>,
}

/// Installed files of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFiles {
    pub name: String,
    pub root: PathBuf,
}

impl Spec {
    /// Returns whether the server must be approved right before it is started or contacted.
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
        /// Whether the user allows network access for this server, independent of commands.
        network: bool,
    },
    Http {
        url: String,
        headers: Vec<Header>,
        sign_in: SignIn,
        kind: HttpKind,
    },
}

/// Header sent with every request. Its value may be a secret and is never printed.
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
    /// Streamable HTTP, or the older event stream if the server supports nothing else.
    Auto,
    Streamable,
    /// Event stream of protocol version 2024-11-05.
    Sse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// Only the headers, or no authentication.
    None,
    /// OAuth, if the server requires it; tokens in the keyring.
    OAuth { client_id: Option<String>, scopes: Vec<String>, redirect_port: Option<u16> },
}
