//! Dependencies of connections, and the source of tokens.

use super::Spec;
use crate::ports::{BoxFuture, Launcher, RemoteAsks};
use std::path::PathBuf;
use std::sync::Arc;

/// What is not there is not offered: no program without a launcher, no questions without somebody who answers them.
#[derive(Clone, Default)]
pub struct Wires {
    pub launcher: Option<Arc<dyn Launcher>>,
    pub asks: Option<Arc<dyn RemoteAsks>>,
    /// The directory of the tool lists of before.
    pub known: Option<PathBuf>,
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Asked before each attempt to reach a server of the project.
    pub approval: Option<Arc<dyn Approval>>,
}

/// What a project's server was approved as.
pub trait Approval: Send + Sync {
    /// Whether it is still that, or what is different and what to do.
    fn holds(&self, spec: &Spec) -> BoxFuture<'_, Result<(), String>>;
}

/// Signs requests to a server of HTTP.
pub trait Tokens: Send + Sync {
    /// What stands behind `Bearer`, renewed where it ran out; nothing where nobody signed in.
    fn token<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Option<String>, String>>;

    /// The server refused a request. Another token is tried at once; nothing means that the person has to sign in.
    fn refused<'a>(&'a self, spec: &'a Spec, refusal: Refusal) -> BoxFuture<'a, Result<Option<String>, String>>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// 401
    Unauthorized {
        /// `WWW-Authenticate`
        challenge: Option<String>,
        /// The token that was sent.
        used: Option<String>,
    },
    /// 403 with a challenge: the token is good for less than this.
    InsufficientScope { challenge: String, scope: Option<String>, used: Option<String> },
}
