//! What stands behind the connection: whoever opens sessions, and the files beside one.

use super::buffers::Buffers;
use crate::protocol::{Command, Effort, Event, Mode, Query, SessionId};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

pub type Answer<T> = BoxFuture<'static, Result<T, Refusal>>;

/// Why something is not done, in a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no key for the model.
    NoKey(String),
    NoSession(String),
    /// Another process has the session.
    Held(String),
    /// What was asked for cannot be.
    Wrong(String),
    /// A policy or a setting that cannot be taken.
    Policy(String),
    Failed(String),
}

/// A session to be opened.
#[derive(Debug, Clone)]
pub struct Asked {
    pub which: Which,
    pub directory: PathBuf,
    /// More directories that belong to the workspace.
    pub more: Vec<PathBuf>,
    /// The editor's servers of tools, for this session.
    pub servers: Vec<Server>,
    /// What it has open, where it tells.
    pub buffers: Option<Buffers>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    New,
    /// Gone on with; `told`: with all that was said before.
    Stored {
        id: String,
        told: bool,
    },
}

/// A server of tools as the editor describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub reach: ServerReach,
}

#[derive(Clone, PartialEq, Eq)]
pub enum ServerReach {
    Program {
        command: PathBuf,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
    },
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
    /// The older stream of events.
    Events {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// Its environment and its headers may hold keys.
impl std::fmt::Debug for ServerReach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { command, .. } => f.debug_struct("Program").field("command", command).finish_non_exhaustive(),
            Self::Http { url, .. } => f.debug_struct("Http").field("url", url).finish_non_exhaustive(),
            Self::Events { url, .. } => f.debug_struct("Events").field("url", url).finish_non_exhaustive(),
        }
    }
}

/// A session that runs.
pub struct Opened {
    pub id: SessionId,
    /// The real path of its workspace.
    pub directory: PathBuf,
    /// The laxest mode that may be chosen.
    pub laxest: Mode,
    pub title: Option<String>,
    /// How hard the model is to think, as it is set.
    pub effort: Option<Effort>,
    pub commands: mpsc::Sender<Command>,
    pub queries: mpsc::Sender<Query>,
    pub events: mpsc::UnboundedReceiver<Event>,
    /// What was said before, where it is to be told.
    pub history: Vec<Event>,
    /// What the person should know before anything else.
    pub notices: Vec<String>,
    pub files: Arc<dyn Files>,
    /// Whether more of what streams is taken.
    pub room: watch::Sender<bool>,
    /// Comes when the session has saved itself and is free for others.
    pub ended: BoxFuture<'static, ()>,
}

/// A session that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: SessionId,
    pub directory: PathBuf,
    pub title: Option<String>,
    pub updated: jiff::Timestamp,
}

/// One way to get a key to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    pub id: &'static str,
    pub name: &'static str,
    pub description: String,
    /// The arguments of aye that do it in a terminal.
    pub in_terminal: Option<&'static [&'static str]>,
}

pub trait Host: Send + Sync + 'static {
    fn open(&self, asked: Asked) -> Answer<Opened>;

    /// Those of a directory, or all, the latest first.
    fn list(&self, directory: Option<PathBuf>) -> Answer<Vec<Listed>>;

    fn delete(&self, id: String) -> Answer<()>;

    fn ways_in(&self) -> Vec<Authentication>;

    /// Whether a model can be asked now.
    fn authenticated(&self) -> Answer<()>;
}

/// What lies beside a session.
pub trait Files: Send + Sync + 'static {
    /// A file of the workspace as it is now; none where it lies elsewhere, is large or is no text.
    fn text(&self, path: &Path) -> BoxFuture<'static, Option<String>>;

    /// Keeps an image for the session: the address by which a prompt names it, or why it cannot be kept.
    fn keep_image(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<String, String>>;

    /// The same of a text.
    fn keep_text(&self, name: String, text: String) -> BoxFuture<'static, Result<String, String>>;
}

/// Nothing lies beside it.
pub struct Nothing;

impl Files for Nothing {
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
