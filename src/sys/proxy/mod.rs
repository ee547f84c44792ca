//! The way out of a command that has a network of its own: an HTTP proxy that lets through what it is told to, and remembers
//! the rest.

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

/// At one time; more wait until they are taken in.
const MAX_CONNECTIONS: usize = 64;
/// Before it is tried again where no connection can be taken in.
const PAUSE: Duration = Duration::from_millis(100);
/// Of the servers a command was kept from. A program that tries more says nothing by the next one.
const MAX_DENIED: usize = 64;

/// Where a request leads, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// As it was judged.
    pub url: String,
    /// In its normal form, a name without the dot that may end it.
    pub host: url::Host<String>,
    pub port: u16,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A server that a command was kept from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedHost {
    pub host: String,
    pub port: u16,
    /// In words, such as follow its name.
    pub reason: String,
    /// Whether a yes of the person could open it; a rule is in the way otherwise.
    pub can_open: bool,
}

/// Why a request is not made, in words for who reads the output of the program that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: String,
    /// Where it would have led, if it can be read at all.
    pub denied: Option<DeniedHost>,
}

/// What may go out.
pub trait Gate: Send + Sync {
    /// Reads and judges the URL of a request; of a `CONNECT` it is `https://` with its target.
    fn admit(&self, url: &str, method: &str) -> Result<Server, Refusal>;
    /// Whether a connection to a server that was let through may be opened to an address that its name has.
    fn may_connect(&self, server: &Server, address: IpAddr) -> Result<(), String>;
}

/// What the proxy of one command needs.
#[derive(Clone)]
pub struct Proxy {
    pub gate: Arc<dyn Gate>,
    /// Looks names up, and connects to what was checked.
    pub fetcher: Fetcher,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

/// Servers that a command was kept from, each once.
#[derive(Debug, Clone, Default)]
pub struct DeniedHosts(Arc<Mutex<BTreeMap<(String, u16), DeniedHost>>>);

impl DeniedHosts {
    fn add(&self, denied: DeniedHost) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_DENIED {
            known.entry((denied.host.clone(), denied.port)).or_insert(denied);
        }
    }

    pub fn list(&self) -> Vec<DeniedHost> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl Proxy {
    /// Serves what connects until it is dropped, and every connection with it.
    pub async fn serve(self, listener: TcpListener, denied: DeniedHosts) -> Infallible {
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
