//! Cloud platform accounts: where their credentials come from, and how requests are authenticated.

pub(crate) mod aws;
pub(crate) mod google;

use crate::protocol::Problem;
use crate::sys::file;
use crate::sys::http::{Headers, HttpError, HttpServer, Reply, Timeouts};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum size in bytes of a credentials file, or of a response that contains credentials.
const MAX_BYTES: usize = 1 << 20;

/// Environment from which account data is read.
#[derive(Clone)]
pub(crate) struct CloudEnvironment {
    /// Environment variables that are relevant to the platform.
    pub variables: BTreeMap<String, String>,
    pub home: PathBuf,
    /// Workspace directories. Programs inside them are never run.
    pub roots: Vec<PathBuf>,
    /// Callback to which every secret that is read is passed, so it can be redacted.
    pub learn: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for CloudEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudEnvironment").finish_non_exhaustive()
    }
}

impl CloudEnvironment {
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns the path given by an environment variable, or otherwise the given path below the home directory.
    fn path(&self, variable: &str, below_home: &str) -> PathBuf {
        match self.variable(variable) {
            Some(path) => self.expand_path(path),
            None => self.home.join(below_home),
        }
    }

    fn expand_path(&self, path: &str) -> PathBuf {
        path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |below| self.home.join(below))
    }
}

/// Reads a credentials file. Returns `None` if it does not exist. Errors never repeat its content.
fn read(path: &Path) -> Result<Option<String>, Problem> {
    let problem = || Problem::new(format!("cannot read `{}`", path.display()));
    match file::read(path, MAX_BYTES as u64) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| problem().because("the file is not UTF-8 text")),
        Err(_) if !path.exists() => Ok(None),
        Err(error) => Err(problem().because(error)),
    }
}

/// Creates the error for a server that cannot be reached.
fn unreachable(what: &str, error: &HttpError) -> Problem {
    Problem::new(format!("cannot get credentials from {what}")).because(error).hint("check the network")
}

/// Reads a JSON response, and returns it with the HTTP status. A body that is not JSON is replaced with an empty
/// object.
async fn json(reply: Reply) -> (u16, Value) {
    let status = reply.status();
    let body = reply.into_head(MAX_BYTES).await;
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| Value::Object(serde_json::Map::new())))
}

/// Returns a string member of a JSON object, or `None` if it is missing or empty.
fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Creates a client for a server on the internet or on this machine.
fn server(address: &str) -> Result<HttpServer, Problem> {
    let timeouts = Timeouts { connect: Duration::from_secs(10), idle: Duration::from_secs(30) };
    HttpServer::new(address, timeouts).map_err(|error| Problem::new(error.to_string()))
}

/// Creates a client for the machine's metadata server, which responds immediately if it exists.
fn metadata_server(address: &str) -> Result<HttpServer, Problem> {
    let timeouts = Timeouts { connect: Duration::from_secs(1), idle: Duration::from_secs(3) };
    HttpServer::link_local(address, timeouts).map_err(|error| Problem::new(error.to_string()))
}

/// Creates headers from names and values.
fn headers<const N: usize>(pairs: [(&'static str, &str); N]) -> Headers {
    pairs.into_iter().map(|(name, value)| (name.into(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests;
