//! Network access of a command in a separate network, through an HTTP proxy that forwards allowed requests and records
//! blocked ones.

mod client_hello;
mod connection;
mod headers;
#[cfg(test)]
mod tests;

use crate::sys::http::fetch::Fetcher;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Maximum number of concurrent connections; others wait.
const MAX_CONNECTIONS: usize = 64;
/// Pause before the next attempt if no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of recorded refused servers. Further ones add no information.
const MAX_DENIED: usize = 64;

/// Parsed target of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyTarget {
    /// URL in the form that was judged.
    pub url: String,
    /// Host in normal form, without a final dot.
    pub host: url::Host<String>,
    pub port: u16,
}

impl fmt::Display for ProxyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A server that was refused to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeniedHost {
    pub host: String,
    pub port: u16,
    /// Reason, as a phrase that follows the name.
    pub reason: String,
    /// Whether an approval can allow it; otherwise a rule denies it.
    pub can_open: bool,
}

/// Reason why a request was refused, for the user of the program that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyRefusal {
    pub reason: String,
    /// Server of the request, if its URL is valid.
    pub denied: Option<DeniedHost>,
}

/// Allows or denies outgoing requests.
pub(crate) trait Gate: Send + Sync {
    /// Parses and judges the URL of a request. For `CONNECT`, the URL is `https://` followed by the target.
    fn admit(&self, url: &str, method: &str) -> Result<ProxyTarget, ProxyRefusal>;
    /// Returns an error if a connection to an allowed server must not use this address of its name.
    fn may_connect(&self, server: &ProxyTarget, address: IpAddr) -> Result<(), String>;
}

/// Components of the proxy of one command.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub gate: Arc<dyn Gate>,
    /// Resolves names, and connects to checked addresses.
    pub fetcher: Fetcher,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

/// Servers that a command was denied, without duplicates.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeniedHosts(Arc<Mutex<BTreeMap<(String, u16), DeniedHost>>>);

impl DeniedHosts {
    fn add(&self, denied: DeniedHost) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_DENIED {
            known.entry((denied.host.clone(), denied.port)).or_insert(denied);
        }
    }

    pub(crate) fn list(&self) -> Vec<DeniedHost> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl Proxy {
    /// Serves all connections. Dropping the future ends the connections too.
    pub(crate) async fn serve(self, listener: TcpListener, denied: DeniedHosts) -> Infallible {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            if connections.len() >= MAX_CONNECTIONS {
                connections.join_next().await;
                continue;
            }
            match listener.accept().await {
                Ok((stream, _)) => {
                    connections.spawn(connection::serve(stream, self.clone(), denied.clone()));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
