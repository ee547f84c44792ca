//! Dependencies of connections, and the source of tokens.

use super::Spec;
use crate::ports::{BoxFuture, Launcher, RemoteAsks};
use std::path::PathBuf;
use std::sync::Arc;

/// Services that connections use. A missing service disables a feature: no programs without a launcher, no requests to
/// the user without a handler.
#[derive(Clone, Default)]
pub struct McpDeps {
    pub launcher: Option<Arc<dyn Launcher>>,
    pub asks: Option<Arc<dyn RemoteAsks>>,
    /// Directory of the tool cache.
    pub known: Option<PathBuf>,
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Approval that is checked before each connection to a server of the project.
    pub approval: Option<Arc<dyn ServerVerifier>>,
}

/// Approval of a project's server.
pub trait ServerVerifier: Send + Sync {
    /// Returns whether the server is unchanged since its approval. An error names the change and the solution.
    fn verify(&self, spec: &Spec) -> BoxFuture<'_, Result<(), String>>;
}

/// Source of access tokens for HTTP servers.
pub trait Tokens: Send + Sync {
    /// Returns the value after `Bearer`, refreshed if it has expired; `None` if the user has not
    /// signed in.
    fn token<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Option<String>, String>>;

    /// Handles a rejected request. Returns another token for an immediate retry; `None` if the user must sign in.
    fn on_rejected<'a>(&'a self, spec: &'a Spec, refusal: AuthRefusal) -> BoxFuture<'a, Result<Option<String>, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthRefusal {
    /// Status 401.
    Unauthorized {
        /// `WWW-Authenticate` header.
        challenge: Option<String>,
        /// Token that was sent.
        used: Option<String>,
    },
    /// Status 403 with a challenge, because the token lacks a scope.
    InsufficientScope { challenge: String, scope: Option<String>, used: Option<String> },
}
