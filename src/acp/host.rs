//! Host of a connection, which opens sessions and provides access to their files.

use super::buffers::EditorBuffers;
use crate::protocol::{Effort, Event, Mode, Query, SessionCommand, SessionId};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

pub(crate) type Answer<T> = BoxFuture<'static, Result<T, Refusal>>;

/// Reason why a request is refused. The message includes what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The API key for the model is missing.
    NoKey(String),
    NoSession(String),
    /// Another process owns the session.
    Held(String),
    /// The request is invalid.
    Wrong(String),
    /// A policy or setting is invalid.
    Policy(String),
    Failed(String),
}

/// Request to open a new or stored session.
#[derive(Debug, Clone)]
pub(crate) struct SessionOpening {
    pub which: SessionOrigin,
    pub directory: PathBuf,
    /// Additional workspace directories.
    pub more: Vec<PathBuf>,
    /// MCP servers that the editor configures for this session.
    pub servers: Vec<EditorServer>,
    /// Unsaved files in the editor, if the editor gives access to them.
    pub buffers: Option<EditorBuffers>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionOrigin {
    New,
    /// Stored session. `history` is whether its complete history is needed.
    Stored {
        id: String,
        history: bool,
    },
}

/// MCP server configured by the editor.
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
    /// Older transport that uses server-sent events.
    Events {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// Omits the environment and the headers, because they may contain keys.
impl std::fmt::Debug for ServerReach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, .. } => f.debug_struct("Program").field("command", command).finish_non_exhaustive(),
            Self::Http { url, .. } => f.debug_struct("Http").field("url", url).finish_non_exhaustive(),
            Self::Events { url, .. } => f.debug_struct("Events").field("url", url).finish_non_exhaustive(),
        }
    }
}

/// Session that has been opened and is running.
pub(crate) struct RunningSession {
    pub id: SessionId,
    /// Canonical path of the workspace.
    pub directory: PathBuf,
    /// Most permissive approval mode that the user can select.
    pub laxest: Mode,
    pub title: Option<String>,
    /// Reasoning effort that is configured.
    pub effort: Option<Effort>,
    pub commands: mpsc::Sender<SessionCommand>,
    pub queries: mpsc::Sender<Query>,
    pub events: mpsc::UnboundedReceiver<Event>,
    /// Complete history, if it was requested.
    pub history: Vec<Event>,
    /// Notices to show to the user first.
    pub notices: Vec<String>,
    pub files: Arc<dyn FileProvider>,
    /// Reports whether the editor can currently accept more streamed text.
    pub room: watch::Sender<bool>,
    /// Completes once the session has been saved and other processes can open it.
    pub ended: BoxFuture<'static, ()>,
}

/// Stored session, as listed to the editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub id: SessionId,
    pub directory: PathBuf,
    pub title: Option<String>,
    pub updated: jiff::Timestamp,
}

/// Way of authenticating with a model provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authentication {
    pub id: &'static str,
    pub name: &'static str,
    pub description: String,
    /// Arguments with which to start aye in a terminal for this method. `None` if no terminal is needed.
    pub in_terminal: Option<&'static [&'static str]>,
}

pub(crate) trait Host: Send + Sync + 'static {
    fn open(&self, asked: SessionOpening) -> Answer<RunningSession>;

    /// Lists the sessions of a directory, or all sessions, with the most recent first.
    fn list(&self, directory: Option<PathBuf>) -> Answer<Vec<Listed>>;

    fn delete(&self, id: String) -> Answer<()>;

    fn auth_methods(&self) -> Vec<Authentication>;

    /// Returns an error if no model is ready for use.
    fn check_authentication(&self) -> Answer<()>;
}

/// Access to the files and artifacts of a session.
pub(crate) trait FileProvider: Send + Sync + 'static {
    /// Returns the current text of a file in the workspace. Returns `None` if the file is outside the workspace, too
    /// large, or not text.
    fn text(&self, path: &Path) -> BoxFuture<'static, Option<String>>;

    /// Stores an image for the session. Returns the URI with which prompts refer to the image, or the reason why it
    /// could not be stored.
    fn keep_image(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String, String>>;

    /// Stores a text for the session. Returns its URI or a reason, like `keep_image`.
    fn keep_text(&self, name: String, text: String) -> BoxFuture<'static, Result<String, String>>;
}

/// Provider that has no files and stores nothing.
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
