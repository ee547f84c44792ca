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

/// Channels, options and data with which the UI is started.
#[derive(Debug)]
pub(crate) struct TuiHandles {
    pub commands: mpsc::Sender<SessionCommand>,
    pub queries: mpsc::Sender<Query>,
    pub events: mpsc::UnboundedReceiver<Event>,
    pub options: UiOptions,
    /// Prompt to send as soon as the session is ready.
    pub prompt: Option<String>,
    /// Text that was typed before the UI was ready.
    pub typed: String,
    /// Data that becomes available only after loading, during which the UI is already visible.
    pub start: oneshot::Receiver<Start>,
    /// Dialogs to show before the session starts. The channel is closed if there are none.
    pub ahead: mpsc::UnboundedReceiver<StartupQuestion>,
    pub editor: Editor,
}

/// Function that runs the user's editor on text with a given file name. It returns the edited text or an error message.
/// Until it returns, the editor has control of the terminal.
#[derive(Clone)]
pub(crate) struct Editor(pub Arc<EditFn>);

type EditFn = dyn Fn(&str, &str) -> Result<String, String> + Send + Sync;

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Editor")
    }
}

/// Content to be shown in the user's editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditorTarget {
    /// Path of a file, as given by the model or a tool.
    File(String),
    /// Text that does not come from a file.
    Text(String),
}

/// External command for a task that runs in a copy of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskProgram {
    /// Opens the task's session.
    Open,
    /// Shows the task's changes.
    Diff,
    /// Lets the user select which of the task's changes to apply.
    Keep,
}

/// Function that runs an external command in the terminal for the task with the given ID, and waits for the command to
/// exit. If it fails, an error message is returned.
#[derive(Clone)]
pub(crate) struct RunTask(pub Arc<RunTaskFn>);

type RunTaskFn = dyn Fn(&str, TaskProgram) -> Result<(), String> + Send + Sync;

impl fmt::Debug for RunTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunTask")
    }
}

/// Function that opens content in the user's editor and waits for the editor to exit. If it fails, an error message is
/// returned.
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
    /// Whether to use ASCII symbols, because the terminal does not support Unicode.
    pub ascii: bool,
    /// Description of a limitation of the terminal or locale and of the resulting fallback. `None` if there is none, or
    /// if the user asked for the fallback.
    pub lacks: Option<String>,
}

/// Options with which the UI is started.
#[derive(Debug, Clone)]
pub(crate) struct UiOptions {
    pub theme: ThemeChoice,
    pub terminal: TerminalTraits,
    /// Timing of the guard that decides when a dialog accepts an answer.
    pub pace: GuardTiming,
    /// Directory of user themes.
    pub themes: Option<PathBuf>,
    /// Whether to avoid unnecessary motion, for example by showing streamed text in whole rows.
    pub reduce_motion: bool,
    /// When to notify the user while the window is not focused.
    pub notices: Notices,
    pub history: HistoryOptions,
    /// File with the user's key bindings.
    pub keys: KeymapFile,
    /// Whether Vim keys are enabled in the draft.
    pub vim: bool,
    pub clipboard: Clipboard,
    pub shows: OpenInEditor,
    pub tasks: RunTask,
    /// Whether aye collects proposed changes to instruction files.
    pub memory: bool,
    /// Whether mouse reporting is enabled.
    pub mouse: bool,
    /// Names of the items in the status row, in order. If empty, the default items are shown.
    pub status: Vec<String>,
    /// Whether to run only the first-run setup, without a session.
    pub sets_up: bool,
    /// Whether the UI exits when the session ends.
    pub closes_with_session: bool,
    pub version: String,
    /// Working directory in display form, such as `~/src/greeter`.
    pub cwd: String,
    /// Home directory, which is displayed as `~`.
    pub home: Option<PathBuf>,
}

impl UiOptions {
    /// Replaces the home directory in paths with `~` for display.
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
    /// Returns default options that do not refer to any saved file.
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

/// File with the user's key bindings.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeymapFile {
    pub path: String,
    /// Content of the file, or the error that occurred when it was read. `None` if there is no file.
    pub text: Option<Result<String, String>>,
}

/// Brightness of the terminal's background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    Dark,
    Light,
}

impl Background {
    /// Parses the value of `COLORFGBG`, such as `15;0` or `0;default;15`. The last number is the background colour. If
    /// it is not recognized, the background is assumed to be dark.
    pub(crate) fn from_colorfgbg(value: &str) -> Self {
        match value.rsplit(';').next().and_then(|last| last.trim().parse::<u8>().ok()) {
            Some(7 | 9..=15) => Self::Light,
            Some(_) | None => Self::Dark,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThemeChoice {
    /// Theme that matches the background reported by the terminal. Until it is reported, `UiOptions::ground` is used.
    Auto,
    /// Built-in or user theme with this name.
    Named(String),
}

/// When to notify the user of pending approvals and finished tasks while the terminal is not focused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notices {
    /// Notify by the best method that the terminal supports.
    Auto,
    Off,
    Bell,
}

/// Data that completes the UI once loading has finished.
#[derive(Debug)]
pub(crate) struct Start {
    pub header: SessionHeader,
    /// Events of the session being resumed, only for display.
    pub history: Vec<Event>,
    /// Position in the journal of the first event in `history`, if the journal contains earlier events.
    pub older: Option<i64>,
    /// Working directory in display form, if it differs from the initial one.
    pub cwd: Option<String>,
    pub model_access: ModelAccess,
    pub trust: Option<TrustQuestion>,
    /// Whether the project has configuration of its own that the user trusts.
    pub is_trusted: bool,
    /// Expiry of the policy as text, such as `expires in 6 d`.
    pub policy_ends: Option<String>,
    /// Line that starts with `Last here:`, if there is one, and a suggested task for this project.
    pub last_here: Option<String>,
    pub attempt: Option<String>,
    /// Whether aye is being started for the first time, with neither settings nor an API key.
    pub is_first: bool,
    /// Command that checks the result of the task, if the session belongs to a task in a copy of the workspace.
    pub task_check: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelAccess {
    Ready,
    /// No prompts can be sent. The message says why and how to change that.
    NoKey {
        message: String,
        /// Configured model, for which the setup asks for an API key first.
        model: Option<String>,
    },
    /// The session is owned by another process, so commands are dropped.
    ReadOnly {
        /// Description of the owner, such as `open in process 4711`.
        holder: String,
    },
}

/// Dialog shown before the session is opened, or instead of it.
#[derive(Debug)]
pub(crate) enum StartupQuestion {
    /// Asks what to do about a locked session. It is shown again until an answer succeeds.
    Held(LockQuestion),
    /// Lets the user choose one of several sessions. No [`Start`] follows.
    Choose,
}

/// Question of what to do about a session that is locked by another process.
#[derive(Debug)]
pub(crate) struct LockQuestion {
    pub session: SessionId,
    pub pid: u32,
    /// Time at which the session was locked, in display form, such as `14:02 UTC`, if known.
    pub since: Option<String>,
    /// Reason why the last answer failed, such as `process 4711 did not end within 5 s`.
    pub problem: Option<String>,
    /// Reason why this process cannot take over the session, if it cannot.
    pub stays: Option<String>,
    pub answer: oneshot::Sender<LockAnswer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockAnswer {
    /// Opens the session read-only. A [`Start`] with [`ModelAccess::ReadOnly`] follows.
    ReadOnly,
    /// Makes the other process save the session and exit. Either a [`Start`] or the same dialog follows.
    TakeOver,
    /// Ends the UI with [`ExitReason::Another`], after which the caller asks for a different session.
    Another,
    Quit,
}

/// Question of whether to trust the project's configuration.
#[derive(Debug)]
pub(crate) struct TrustQuestion {
    /// Project directory, in display form.
    pub place: String,
    /// Content of the project's configuration, one item per line.
    pub items: Vec<String>,
    /// Files that contain code which other programs run when they open the folder, each with the name of the program.
    pub runs_code: Vec<String>,
    /// Project files that the user can read before answering.
    pub files: Vec<ProjectFile>,
    /// Address of the remote repository, according to the project's git data.
    pub remote: Option<String>,
    /// Changes since the user trusted the project, or `None` if the user has never trusted it.
    pub changes: Option<Vec<String>>,
    /// Reason why the project cannot be trusted in its present state, if there is one.
    pub broken: Option<String>,
    /// Whether trusting the project means that commands run in a copy without approval.
    pub approves_effects: bool,
    pub answer: oneshot::Sender<TrustAnswer>,
}

impl TrustQuestion {
    /// Returns whether the project has anything to review. If not, the dialog is only about running commands in the
    /// project.
    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty() || self.changes.is_some() || self.broken.is_some()
    }
}

/// Project file in text form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectFile {
    pub name: String,
    pub text: String,
    /// Whether `text` contains only the beginning of the file.
    pub is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAnswer {
    /// Trusts the project, so that all its settings take effect.
    Yes,
    /// Does not trust the project. None of its configuration takes effect, and its files cannot be changed.
    ReadOnly,
    /// Does not trust a project that has nothing to review. aye asks before each command.
    Decline,
    Quit,
}

/// Data shown in the greeting and the status row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionHeader {
    pub branch: Option<String>,
    pub model: String,
    /// Model that writes summaries, if it differs from `model`.
    pub summary_model: Option<String>,
    pub context_tokens: Option<u64>,
    /// Reasoning effort, if it was set.
    pub effort: Option<Effort>,
    pub mode: Mode,
    /// Source of the policy, such as `built-in` or `user`.
    pub policy: String,
    /// State of the sandbox, such as `sandbox on · net off`.
    pub sandbox: String,
}

impl SessionHeader {
    /// Returns whether commands run without a sandbox.
    pub(crate) fn is_unsandboxed(&self) -> bool {
        let sandbox = self.sandbox.to_ascii_lowercase();
        ["none", "off"].iter().any(|word| sandbox.split([' ', ':', ',']).nth(1) == Some(*word))
    }
}

/// Session that the user wants to open in place of the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionTarget {
    New,
    Session(SessionId),
}

/// Reason why the UI exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// The user quit.
    Quit,
    /// The process received this signal and must exit.
    Signal(i32),
    /// The terminal has closed.
    Closed,
    /// The session is owned by another process, and the user wants to open a different one.
    Another,
    /// The user wants to run the first-run setup and then continue.
    Setup,
    /// The user wants to open another session. The current one has been saved.
    Open(SessionTarget),
}

/// Results of the UI, which the caller prints to the main screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TuiOutcome {
    pub ended: ExitReason,
    pub last_answer: Option<String>,
    /// Text that was typed after the UI had stopped reading, or that could not be saved in any session.
    pub typed: String,
    /// Prompt that was entered for a session that never started.
    pub unsent: Option<String>,
    /// Name of the model last used in this session, to be used for the next one.
    pub model: String,
    pub mode: Option<Mode>,
    /// Command that resumes the session, if possible: `aye --resume=7f3a…`.
    pub resume_hint: Option<String>,
    /// Session that can be resumed, if any.
    pub session: Option<SessionId>,
}
