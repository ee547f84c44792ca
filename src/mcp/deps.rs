//! Dependencies of connections, including the source of tokens.

use super::Spec;
use crate::ports::{BoxFuture, Launcher, RemoteAsks};
use std::path::PathBuf;
use std::sync::Arc;

/// Services that connections depend on. Features whose service is missing are disabled: without a launcher, server
/// programs are not started, and without a handler, servers cannot send requests to the user.
#[derive(Clone, Default)]
pub struct McpDeps {
    pub launcher: Option<Arc<dyn Launcher>>,
    pub asks: Option<Arc<dyn RemoteAsks>>,
    /// Directory that contains the tool cache.
    pub known: Option<PathBuf>,
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Check that runs before each connection to a server that a project configures.
    pub approval: Option<Arc<dyn ServerVerifier>>,
}

/// Verifies that a project's server is still the one that was approved.
pub trait ServerVerifier: Send + Sync {
    /// Checks that the server has not changed since it was approved. The error says what changed and what to do about
    /// it.
    fn verify(&self, spec: &Spec) -> BoxFuture<'_, Result<(), String>>;
}

/// Source of access tokens for servers accessed over HTTP.
pub trait Tokens: Send + Sync {
    /// Returns the bearer token, refreshing it if it has expired. Returns `None` if the user has not signed in.
    fn token<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Option<String>, String>>;

    /// Called when the server rejected a request. Returns a new token with which to retry immediately, or `None` if the
    /// user must sign in.
    fn on_rejected<'a>(&'a self, spec: &'a Spec, refusal: AuthRefusal) -> BoxFuture<'a, Result<Option<String>, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthRefusal {
    /// The server responded with status 401.
    Unauthorized {
        /// Value of the `WWW-Authenticate` header.
        challenge: Option<String>,
        /// Token that was sent with the request.
        used: Option<String>,
    },
    /// The server responded with status 403 and a challenge, because the token lacks a scope.
    InsufficientScope { challenge: String, scope: Option<String>, used: Option<String> },
}
