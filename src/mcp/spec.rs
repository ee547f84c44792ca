//! A server as the person, or a trusted project, describes it.

use std::path::PathBuf;
use std::time::Duration;

/// One server, checked: its name has no `/`, its address is `https:` or on loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub name: String,
    pub reach: Reach,
    /// Off by the settings or for want of a yes, and why.
    pub off: Option<String>,
    pub of_project: bool,
    /// How often a connection is tried again before the server counts as unreachable, and the first wait between.
    pub retry_attempts: u32,
    pub retry_delay: Duration,
    pub start_timeout: Duration,
    pub call_timeout: Duration,
    /// Tools with a timeout of their own.
    pub tool_timeouts: Vec<(String, Duration)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    Program {
        argv: Vec<String>,
        environment: Vec<(String, String)>,
        directory: Option<PathBuf>,
        /// The person lets it reach the network, whatever commands may.
        network: bool,
    },
    Http {
        url: String,
        headers: Vec<Header>,
        sign_in: SignIn,
        kind: HttpKind,
    },
}

/// Sent with every request. The value may be a secret: nothing prints it.
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
    /// Streamable HTTP, and where the server knows only the older event stream, that.
    Auto,
    Streamable,
    /// The event stream of revision 2024-11-05.
    Sse,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// The headers say all there is, or nothing is asked.
    None,
    /// OAuth, where the server asks for it; tokens in the keyring.
    OAuth { client_id: Option<String>, scopes: Vec<String>, redirect_port: Option<u16> },
}
