//! MCP server configuration from the user's `config.toml` and from a project's `.mcp.json`.

mod edit;
pub(super) mod expand;
mod project;
#[cfg(test)]
mod tests;
mod user;

pub(crate) use edit::{NewServer, has_same_server, with_server, without_server};
pub(crate) use expand::variable_names;
pub(crate) use project::{parse_plugin_servers, parse_project_servers};

use super::address::{check_header, check_server};
use super::{ConfigError, Environment};
use crate::protocol::{BACKEND_SERVER, SAMPLED_BY_AGENT};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum length of a server name in characters.
const MAX_LETTERS: usize = 64;

/// Definition of an MCP server, which may be disabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerDefinition {
    pub name: String,
    /// File that contains the definition, with the line number if known.
    pub place: String,
    pub way: ServerTransport,
    /// Reason why the server is disabled, if it is.
    pub off: Option<String>,
    pub retry_attempts: u32,
    pub retry_delay: Duration,
    pub start_timeout: Duration,
    pub call_timeout: Duration,
    pub tool_timeouts: Vec<(String, Duration)>,
}

/// How to connect to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerTransport {
    Program { argv: Vec<String>, environment: Values, directory: Option<PathBuf>, network: bool },
    Http { url: String, kind: HttpTransport, headers: Values, oauth: OAuth },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HttpTransport {
    #[default]
    Auto,
    Streamable,
    Sse,
}

/// OAuth settings for a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OAuth {
    pub client_id: Option<String>,
    pub scopes: Vec<String>,
    pub redirect_port: Option<u16>,
}

/// Names with their values. The values may be secrets and are never displayed.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Values(pub Vec<(String, String)>);

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Values {
    pub(crate) fn names(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }
}

/// The edited text, or `None` if no edit is needed or possible.
type ConfigEdit = Result<Option<String>, ConfigError>;

/// Servers that a file defines.
#[derive(Debug, Default)]
pub(crate) struct ServerFile {
    pub servers: Vec<ServerDefinition>,
    /// Messages about entries that are invalid, or valid but risky.
    pub problems: Vec<String>,
    /// Secrets that appear in the file in plain text.
    pub literal_secrets: Vec<String>,
}

/// Validates a server name. Returns the reason if it is invalid.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    if let Some((reserved, owner)) = reserved_name(name) {
        return Err(format!("the server name `{reserved}` is reserved for {owner}; rename the server"));
    }
    if (1..=MAX_LETTERS).contains(&name.len()) && name.chars().all(plain) {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_LETTERS).collect();
    Err(format!("invalid server name `{shown}`: must be 1 to {MAX_LETTERS} ASCII letters, digits, `-`, `_` and `.`"))
}

/// Returns the reserved name that equals a name, and what it is reserved for. No MCP server may have it. The name
/// `agent` is allowed, because records distinguish it from `Agent`.
pub(crate) fn reserved_name(name: &str) -> Option<(&'static str, &'static str)> {
    if name.eq_ignore_ascii_case(BACKEND_SERVER) {
        return Some((BACKEND_SERVER, "back-end tools"));
    }
    (name == SAMPLED_BY_AGENT).then_some((SAMPLED_BY_AGENT, "agents"))
}

/// Validates a server URL. Returns the reason if it is invalid.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    check_server(url)
}

/// Returns whether a header with this name usually contains credentials.
pub(super) fn is_authentication(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "access-key"]
        .iter()
        .any(|word| header.contains(word))
}

/// Adds an `Authorization` header with the bearer token from an environment variable. Returns the reason if this fails.
fn bearer(variable: &str, environment: &Environment, headers: &mut Values) -> Option<String> {
    if headers.names("authorization") {
        return Some("both an `Authorization` header and `bearer_token_env` are set; remove one".to_owned());
    }
    match environment.get(variable) {
        Some(token) => {
            headers.0.push(("Authorization".to_owned(), format!("Bearer {token}")));
            check_header("Authorization", token).err()
        }
        None => Some(format!("the environment variable {variable} (bearer token) is not set")),
    }
}
