//! Network access for a command that has its own network namespace, through an HTTP proxy that forwards allowed
//! requests and records denied ones.

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

/// Maximum number of concurrent connections. Any further connections wait.
const MAX_CONNECTIONS: usize = 64;
/// Pause before the next attempt after accepting a connection failed.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of denied servers to record. More of them would add no useful information.
const MAX_DENIED: usize = 64;

/// Target of a request, parsed from its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyTarget {
    /// URL in the form in which it was checked.
    pub url: String,
    /// Host in normalized form, without a trailing dot.
    pub host: url::Host<String>,
    pub port: u16,
}

impl fmt::Display for ProxyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A server to which a command was denied access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeniedHost {
    pub host: String,
    pub port: u16,
    /// Reason, phrased so that it can follow the server's name.
    pub reason: String,
    /// Whether access can be allowed by an approval. If not, a rule denies it.
    pub can_open: bool,
}

/// Why a request was denied, for the user of the program that sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyRefusal {
    pub reason: String,
    /// Server to which the request was addressed, if its URL is valid.
    pub denied: Option<DeniedHost>,
}

/// Decides which outgoing requests are allowed.
pub(crate) trait Gate: Send + Sync {
    /// Parses the URL of a request and decides whether the request is allowed. For `CONNECT`, the URL is `https://`
    /// followed by the target.
    fn admit(&self, url: &str, method: &str) -> Result<ProxyTarget, ProxyRefusal>;
    /// Returns an error if a connection to an allowed server must not use this address, to which the server's name
    /// resolves.
    fn may_connect(&self, server: &ProxyTarget, address: IpAddr) -> Result<(), String>;
}

/// Components of a command's proxy.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub gate: Arc<dyn Gate>,
    /// Resolves names and connects only to checked addresses.
    pub fetcher: Fetcher,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

/// Servers to which a command was denied access, without duplicates.
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
    /// Serves all connections. Dropping the future closes them as well.
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
