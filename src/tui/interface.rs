//! Inputs and results of the terminal UI.

use super::clipboard::Clipboard;
use super::history::HistoryOptions;
use super::terminal::Emulator;
use super::theme::ColourDepth;
use super::typeahead_guard::GuardTiming;
use crate::protocol::{Effort, Event, Mode, Query, SessionCommand, SessionId};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Channels, options and data of the UI.
#[derive(Debug)]
pub(crate) struct TuiHandles {
    pub commands: mpsc::Sender<SessionCommand>,
    pub queries: mpsc::Sender<Query>,
    pub events: mpsc::UnboundedReceiver<Event>,
    pub options: UiOptions,
    /// Prompt to send as soon as the session is ready.
    pub prompt: Option<String>,
    /// Text typed before the UI was ready.
    pub typed: String,
    /// Data that is available only after loading; the UI is visible before.
    pub start: oneshot::Receiver<Start>,
    /// Dialogs before the session starts. The channel is closed if there are none.
    pub ahead: mpsc::UnboundedReceiver<StartupQuestion>,
    pub editor: Editor,
}

/// The user's editor: a function that takes a file name and text, and returns the edited text or an error. The editor
/// has the terminal until it exits.
#[derive(Clone)]
pub(crate) struct Editor(pub Arc<EditFn>);

type EditFn = dyn Fn(&str, &str) -> Result<String, String> + Send + Sync;

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Editor")
    }
}

/// Content to show in the user's editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditorTarget {
    /// File, as named by the model or a tool.
    File(String),
    /// Text that is not in a file.
    Text(String),
}

/// Command about a task in a copy of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskProgram {
    /// Open its session.
    Open,
    /// Show its changes.
    Diff,
    /// Select which of its changes to apply.
    Keep,
}

/// Function that runs a command about a task in the terminal and waits until it exits. Returns an error message on
/// failure.
#[derive(Clone)]
pub(crate) struct RunTask(pub Arc<RunTaskFn>);

type RunTaskFn = dyn Fn(&str, TaskProgram) -> Result<(), String> + Send + Sync;

impl fmt::Debug for RunTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunTask")
    }
}

/// Function that opens content in the user's editor and waits until it is closed. Returns an error message on failure.
#[derive(Clone)]
pub(crate) struct OpenInEditor(pub Arc<OpenFn>);

type OpenFn = dyn Fn(&EditorTarget) -> Result<(), String> + Send + Sync;

impl fmt::Debug for OpenInEditor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shows")
    }
}

/// Traits of the terminal, derived from the environment and the settings.
#[derive(Debug, Clone)]
pub(crate) struct TerminalTraits {
    pub emulator: Emulator,
    pub ground: Background,
    pub colours: ColourDepth,
    /// Use ASCII symbols for terminals without Unicode.
    pub ascii: bool,
    /// Limitation of the terminal or locale, and the resulting fallback, unless the user requested
    /// it.
    pub lacks: Option<String>,
}

/// Options of the UI.
#[derive(Debug, Clone)]
pub(crate) struct UiOptions {
    pub theme: ThemeChoice,
    pub terminal: TerminalTraits,
    /// Delays before a dialog accepts an answer.
    pub pace: GuardTiming,
    /// Directory of the user's themes.
    pub themes: Option<PathBuf>,
    /// Show streamed text in whole rows, and avoid unnecessary motion.
    pub reduce_motion: bool,
    /// Notifications while the window is unfocused.
    pub notices: Notices,
    pub history: HistoryOptions,
    /// The user's key bindings.
    pub keys: KeymapFile,
    /// Use Vim keys in the draft.
    pub vim: bool,
    pub clipboard: Clipboard,
    pub shows: OpenInEditor,
    pub tasks: RunTask,
    /// Whether aye collects proposals for instruction files.
    pub memory: bool,
    /// Enable mouse reports.
    pub mouse: bool,
    /// Items of the status row, in order; empty for the default.
    pub status: Vec<String>,
    /// Run only the first-run setup; no session starts.
    pub sets_up: bool,
    /// Close the screen when the session ends.
    pub closes_with_session: bool,
    pub version: String,
    /// Working directory as displayed: `~/src/greeter`.
    pub cwd: String,
    /// Home directory, displayed as `~`.
    pub home: Option<PathBuf>,
}

impl UiOptions {
    /// Shortens paths for display.
    pub(crate) fn shorten<'a>(&self, paths: impl Iterator<Item = &'a mut String>) {
        for path in paths {
            if let Some(home) = &self.home {
                *path = crate::text::abbreviate_home(Path::new(path), home);
            }
        }
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl UiOptions {
    /// Returns default options without saved files.
    pub(crate) fn default_options() -> Self {
        Self {
            theme: ThemeChoice::Auto,
            terminal: TerminalTraits {
                emulator: Emulator::default(),
                ground: Background::Dark,
                colours: ColourDepth::None,
                ascii: false,
                lacks: None,
            },
            pace: GuardTiming::default(),
            themes: None,
            reduce_motion: false,
            notices: Notices::Auto,
            history: HistoryOptions { file: None, redactor: super::history::HistoryRedactor(Arc::new(str::to_owned)) },
            clipboard: Clipboard::default(),
            shows: OpenInEditor(Arc::new(|_| Ok(()))),
            tasks: RunTask(Arc::new(|_, _| Ok(()))),
            memory: false,
            mouse: true,
            keys: KeymapFile::default(),
            status: Vec::new(),
            sets_up: false,
            closes_with_session: false,
            vim: false,
            version: "0.1.0".to_owned(),
            cwd: "~/src/greeter".to_owned(),
            home: Some(PathBuf::from("/home/me")),
        }
    }
}

/// Key binding file.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeymapFile {
    pub path: String,
    /// Content or read error; `None` if there is no file.
    pub text: Option<Result<String, String>>,
}

/// Background of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    Dark,
    Light,
}

impl Background {
    /// Parses `COLORFGBG`, such as `15;0` or `0;default;15`; the last value is the background.
    pub(crate) fn from_colorfgbg(value: &str) -> Self {
        match value.rsplit(';').next().and_then(|last| last.trim().parse::<u8>().ok()) {
            Some(7 | 9..=15) => Self::Light,
            Some(_) | None => Self::Dark,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThemeChoice {
    /// Chosen by the background that the terminal reports, or before its report by `UiOptions::ground`.
    Auto,
    /// Built-in or user theme.
    Named(String),
}

/// Notifications about pending approvals and finished tasks while the terminal has no focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notices {
    /// Best notification method that the terminal supports.
    Auto,
    Off,
    Bell,
}

/// Data that the UI needs once loading is complete.
#[derive(Debug)]
pub(crate) struct Start {
    pub header: SessionHeader,
    /// Events of a resumed session, for display only.
    pub history: Vec<Event>,
    /// Journal position at which the history begins, if earlier entries exist.
    pub older: Option<i64>,
    /// Displayed working directory, if it differs from the initial one.
    pub cwd: Option<String>,
    pub model_access: ModelAccess,
    pub trust: Option<TrustQuestion>,
    /// Whether the project has its own configuration and the user trusts it.
    pub is_trusted: bool,
    /// Expiry of the policy as text: `expires in 6 d`.
    pub policy_ends: Option<String>,
    /// `Last here: …` line, and a suggested task for this project, if any.
    pub last_here: Option<String>,
    pub attempt: Option<String>,
    /// Whether this is the first start, without settings and API key.
    pub is_first: bool,
    /// Command that checks the result of the task, if the session belongs to a task in a copy of the workspace.
    pub task_check: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelAccess {
    Ready,
    /// Prompts cannot be sent; the message gives the reason and the solution.
    NoKey {
        message: String,
        /// Configured model, whose API key is requested first.
        model: Option<String>,
    },
    /// Another process owns the session, so commands are dropped.
    ReadOnly {
        /// Owner of the session: `open in process 4711`.
        holder: String,
    },
}

/// Dialog shown before or instead of the session.
#[derive(Debug)]
pub(crate) enum StartupQuestion {
    /// Dialog about a locked session, repeated until an answer succeeds.
    Held(LockQuestion),
    /// Choice among several sessions; no start follows.
    Choose,
}

/// Dialog about a session that another process has open.
#[derive(Debug)]
pub(crate) struct LockQuestion {
    pub session: SessionId,
    pub pid: u32,
    /// Time of the lock for display, if known: `14:02 UTC`.
    pub since: Option<String>,
    /// Reason why the last answer failed: `process 4711 did not end within 5 s`.
    pub problem: Option<String>,
    /// Reason why this process cannot take over the session.
    pub stays: Option<String>,
    pub answer: oneshot::Sender<LockAnswer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockAnswer {
    /// View only: a `Start` with `ModelAccess::ReadOnly` follows.
    ReadOnly,
    /// The other process saves and exits. A `Start` follows, or the dialog again.
    TakeOver,
    /// End the UI with `ExitReason::Another`; the caller asks for another session.
    Another,
    Quit,
}

/// Dialog that asks whether to trust the project's own configuration.
#[derive(Debug)]
pub(crate) struct TrustQuestion {
    /// Project directory, as displayed.
    pub place: String,
    /// Project configuration, one line per item.
    pub items: Vec<String>,
    /// Files that other programs run when they open the folder, each with its program.
    pub runs_code: Vec<String>,
    /// Project files that the user can read before answering.
    pub files: Vec<ProjectFile>,
    /// Remote address from the project's git data.
    pub remote: Option<String>,
    /// Changes since the user trusted the project; `None` if the user never did.
    pub changes: Option<Vec<String>>,
    /// Reason why the project cannot be trusted in its current state.
    pub broken: Option<String>,
    /// Whether commands run in a copy without approval once the user trusts the project.
    pub approves_effects: bool,
    pub answer: oneshot::Sender<TrustAnswer>,
}

impl TrustQuestion {
    /// Returns whether the project has files to review. Otherwise the dialog is only about its commands.
    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty() || self.changes.is_some() || self.broken.is_some()
    }
}

/// Project file as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectFile {
    pub name: String,
    pub text: String,
    /// Whether the file is longer than this text.
    pub is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAnswer {
    /// Trust the project: all its settings take effect.
    Yes,
    /// Do not trust the project: none of its configuration takes effect, and its files cannot be
    /// changed.
    ReadOnly,
    /// Do not trust a project without files to review: aye asks before each command.
    Decline,
    Quit,
}

/// Data for the greeting and the status row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionHeader {
    pub branch: Option<String>,
    pub model: String,
    /// Model that writes summaries, if it is not the model in use.
    pub summary_model: Option<String>,
    pub context_tokens: Option<u64>,
    /// Reasoning effort, if set.
    pub effort: Option<Effort>,
    pub mode: Mode,
    /// Source of the policy: `built-in`, `user`.
    pub policy: String,
    /// Sandbox state: `sandbox on · net off`.
    pub sandbox: String,
}

impl SessionHeader {
    /// Returns whether commands run unsandboxed.
    pub(crate) fn is_unsandboxed(&self) -> bool {
        let sandbox = self.sandbox.to_ascii_lowercase();
        ["none", "off"].iter().any(|word| sandbox.split([' ', ':', ',']).nth(1) == Some(*word))
    }
}

/// Session that the user wants to open instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionTarget {
    New,
    Session(SessionId),
}

/// Reason why the UI ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// The user quit.
    Quit,
    /// The process must end because of this signal.
    Signal(i32),
    /// The terminal was closed.
    Closed,
    /// Another process owns the session, and the user wants another session.
    Another,
    /// The user wants to run the first-run setup, then continue.
    Setup,
    /// The user wants to open another session; the current one is saved.
    Open(SessionTarget),
}

/// Results to print to the main screen afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TuiOutcome {
    pub ended: ExitReason,
    pub last_answer: Option<String>,
    /// Text that was typed after this UI stopped reading, or before a session could save it.
    pub typed: String,
    /// Prompt for a session that never started.
    pub unsent: Option<String>,
    /// Last model of the session, for the next one.
    pub model: String,
    pub mode: Option<Mode>,
    /// Command that resumes the session, if possible: `aye --resume=7f3a…`.
    pub resume_hint: Option<String>,
    /// Session that can be resumed.
    pub session: Option<SessionId>,
}
