//! What a screen is given, and what it leaves behind.

use super::theme::Colours;
use crate::protocol::{Command, Effort, Event, Mode};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Everything the screen is connected to.
#[derive(Debug)]
pub struct Front {
    pub commands: mpsc::Sender<Command>,
    pub events: mpsc::UnboundedReceiver<Event>,
    pub options: Options,
    /// Sent as soon as everything is ready.
    pub prompt: Option<String>,
    /// What is known only after loading; the screen is there before it.
    pub start: oneshot::Receiver<Start>,
}

/// What a prompt becomes before it is kept: the same without its secrets.
#[derive(Clone)]
pub struct KeptAs(pub Arc<dyn Fn(&str) -> String + Send + Sync>);

impl fmt::Debug for KeptAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptAs")
    }
}

/// How the screen looks.
#[derive(Debug, Clone)]
pub struct Options {
    pub theme: ThemeChoice,
    /// What the environment says of the background.
    pub ground: Ground,
    pub colours: Colours,
    /// Signs for terminals without Unicode.
    pub ascii: bool,
    /// The file of prompts sent before; none keeps them in memory only.
    pub history: Option<PathBuf>,
    /// What a prompt is written into that file as.
    pub kept_as: KeptAs,
    pub version: String,
    /// As people write it: `~/src/greeter`.
    pub cwd: String,
}

/// The background of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    Dark,
    Light,
}

impl Ground {
    /// What `COLORFGBG` says: `15;0`, or `0;default;15`; the background is the last of them.
    pub fn of_variable(value: &str) -> Self {
        match value.rsplit(';').next().and_then(|last| last.trim().parse::<u8>().ok()) {
            Some(7 | 9..=15) => Self::Light,
            Some(_) | None => Self::Dark,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThemeChoice {
    /// By the terminal's background; until it answers, by `Options::ground`.
    Auto,
    /// A built-in theme.
    Named(String),
}

/// What the screen needs besides the events once all is loaded.
#[derive(Debug)]
pub struct Start {
    pub header: Header,
    /// A resumed session, shown and not acted on.
    pub history: Vec<Event>,
    pub model_access: ModelAccess,
    pub trust: Option<Trust>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelAccess {
    Ready,
    /// Nothing can be sent; the message says why and what to do.
    NoKey {
        message: String,
    },
}

/// Whether what the project brings in takes effect.
#[derive(Debug)]
pub struct Trust {
    /// The directory, as people write it.
    pub place: String,
    /// One line for each thing.
    pub items: Vec<String>,
    /// What can be read of it before the answer.
    pub files: Vec<BroughtFile>,
    /// Where its git data says that it comes from.
    pub remote: Option<String>,
    /// What is no longer as it was when the person said yes; `None` where they never did.
    pub changes: Option<Vec<String>>,
    /// Why it cannot be trusted as it is.
    pub broken: Option<String>,
    pub answer: oneshot::Sender<TrustAnswer>,
}

/// A file of the project, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BroughtFile {
    pub name: String,
    pub text: String,
    /// Whether there is more than this.
    pub is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// All of it takes effect.
    Yes,
    /// None of it does, and nothing is changed there.
    ReadOnly,
    Quit,
}

/// Facts for the head of the transcript and the status row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    pub branch: Option<String>,
    pub model: String,
    pub context_tokens: Option<u64>,
    /// How hard the model is told to think, where it is told.
    pub effort: Option<Effort>,
    pub mode: Mode,
    /// `built-in`, `user`: where the policy comes from.
    pub policy: String,
    /// `sandbox on · net off`.
    pub sandbox: String,
}

/// Why the screen ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The person left.
    Quit,
    /// The process is to end by this signal.
    Signal(i32),
    /// The terminal is gone.
    Closed,
}

/// What is printed to the main screen afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub ended: Ended,
    pub last_answer: Option<String>,
    /// `aye --resume 7f3a…`, where there is something to resume.
    pub resume_hint: Option<String>,
}
