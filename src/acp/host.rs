//! Host of the connection: opens sessions, and provides the files of a session.

use super::buffers::EditorBuffers;
use crate::protocol::{Effort, Event, Mode, Query, SessionCommand, SessionId};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

pub(crate) type Answer<T> = BoxFuture<'static, Result<T, Refusal>>;

/// Reason why a request is refused, as a sentence with the solution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no API key for the model.
    NoKey(String),
    NoSession(String),
    /// Another process owns the session.
    Held(String),
    /// The request is invalid.
    Wrong(String),
    /// A policy or a setting is invalid.
    Policy(String),
    Failed(String),
}

/// Request to open a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionOpening {
    pub which: SessionOrigin,
    pub directory: PathBuf,
    /// Additional directories of the workspace.
    pub more: Vec<PathBuf>,
    /// MCP servers from the editor, for this session.
    pub servers: Vec<EditorServer>,
    /// The editor's unsaved files, if the editor gives access to them.
    pub buffers: Option<EditorBuffers>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionOrigin {
    New,
    /// Stored session; `history` requests its whole history.
    Stored {
        id: String,
        history: bool,
    },
}

/// MCP server as the editor describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditorServer {
    pub name: String,
    pub reach: ServerReach,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum ServerReach {
    Program {
        command: PathBuf,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
    },
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
    /// The older transport with server-sent events.
    Events {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// Hides the environment and the headers, which may contain keys.
impl std::fmt::Debug for ServerReach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, .. } => f.debug_struct("Program").field("command", command).finish_non_exhaustive(),
            Self::Http { url, .. } => f.debug_struct("Http").field("url", url).finish_non_exhaustive(),
            Self::Events { url, .. } => f.debug_struct("Events").field("url", url).finish_non_exhaustive(),
        }
    }
}

/// Running session.
pub(crate) struct RunningSession {
    pub id: SessionId,
    /// Canonical path of its workspace.
    pub directory: PathBuf,
    /// Most permissive mode that may be chosen.
    pub laxest: Mode,
    pub title: Option<String>,
    /// The reasoning effort that is set.
    pub effort: Option<Effort>,
    pub commands: mpsc::Sender<SessionCommand>,
    pub queries: mpsc::Sender<Query>,
    pub events: mpsc::UnboundedReceiver<Event>,
    /// History, if it was requested.
    pub history: Vec<Event>,
    /// Notices that the user should see first.
    pub notices: Vec<String>,
    pub files: Arc<dyn FileProvider>,
    /// Receiver that tells whether more streamed text is accepted.
    pub room: watch::Sender<bool>,
    /// Completes when the session has been saved and is available to other processes.
    pub ended: BoxFuture<'static, ()>,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub id: SessionId,
    pub directory: PathBuf,
    pub title: Option<String>,
    pub updated: jiff::Timestamp,
}

/// Way to authenticate with a model provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authentication {
    pub id: &'static str,
    pub name: &'static str,
    pub description: String,
    /// Arguments of aye that start the authentication in a terminal.
    pub in_terminal: Option<&'static [&'static str]>,
}

pub(crate) trait Host: Send + Sync + 'static {
    fn open(&self, asked: SessionOpening) -> Answer<RunningSession>;

    /// Lists the sessions of a directory, or all sessions, most recent first.
    fn list(&self, directory: Option<PathBuf>) -> Answer<Vec<Listed>>;

    fn delete(&self, id: String) -> Answer<()>;

    fn auth_methods(&self) -> Vec<Authentication>;

    /// Returns an error unless a model is ready for use.
    fn check_authentication(&self) -> Answer<()>;
}

/// Files and artifacts of a session.
pub(crate) trait FileProvider: Send + Sync + 'static {
    /// Returns the current text of a file in the workspace; `None` if it is outside the workspace, too large or not
    /// text.
    fn text(&self, path: &Path) -> BoxFuture<'static, Option<String>>;

    /// Stores an image for the session. Returns the URI by which a prompt refers to it, or the reason why it cannot be
    /// stored.
    fn keep_image(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String, String>>;

    /// Stores text for the session, like `keep_image`.
    fn keep_text(&self, name: String, text: String) -> BoxFuture<'static, Result<String, String>>;
}

/// Implementation without files.
pub(crate) struct NoFiles;

impl FileProvider for NoFiles {
    fn text(&self, _: &Path) -> BoxFuture<'static, Option<String>> {
        Box::pin(async { None })
    }

    fn keep_image(&self, _: Vec<u8>) -> BoxFuture<'static, Result<String, String>> {
        Box::pin(async { Err("saving is not available here".to_owned()) })
    }

    fn keep_text(&self, _: String, _: String) -> BoxFuture<'static, Result<String, String>> {
        Box::pin(async { Err("saving is not available here".to_owned()) })
    }
}
