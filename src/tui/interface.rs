//! What a screen is given, and what it leaves behind.

use super::clipboard::Clipboard;
use super::terminal::Emulator;
use super::theme::Colours;
use super::typeahead_guard::GuardTiming;
use crate::protocol::{Command, Effort, Event, Mode, Query, SessionId};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Everything the screen is connected to.
#[derive(Debug)]
pub struct TuiHandles {
    pub commands: mpsc::Sender<Command>,
    pub queries: mpsc::Sender<Query>,
    pub events: mpsc::UnboundedReceiver<Event>,
    pub options: Options,
    /// Sent as soon as everything is ready.
    pub prompt: Option<String>,
    /// What was typed before there was a screen for it.
    pub typed: String,
    /// What is known only after loading; the screen is there before it.
    pub start: oneshot::Receiver<Start>,
    /// What is asked before there is a start; a channel without a sender asks nothing.
    pub ahead: mpsc::UnboundedReceiver<StartupQuestion>,
    pub editor: Editor,
}

/// The person's editor: given the name of a file and its text it says what that is when the editor ends, or why it is not known.
/// It has the terminal meanwhile.
#[derive(Clone)]
pub struct Editor(pub Arc<EditFn>);

type EditFn = dyn Fn(&str, &str) -> Result<String, String> + Send + Sync;

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Editor")
    }
}

/// What a prompt becomes before it is kept: the same without its secrets.
#[derive(Clone)]
pub struct HistoryRedactor(pub Arc<dyn Fn(&str) -> String + Send + Sync>);

impl fmt::Debug for HistoryRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptAs")
    }
}

/// What the person wants to see in their own editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditorTarget {
    /// A file, as the model or a tool named it.
    File(String),
    /// Words that are in no file.
    Text(String),
}

/// Shows it in the person's editor and waits until that is left; what went wrong, in words.
#[derive(Clone)]
pub struct OpenInEditor(pub Arc<OpenFn>);

type OpenFn = dyn Fn(&EditorTarget) -> Result<(), String> + Send + Sync;

impl fmt::Debug for OpenInEditor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shows")
    }
}

/// How the screen looks.
#[derive(Debug, Clone)]
pub struct Options {
    pub theme: ThemeChoice,
    /// What the environment says of the background.
    pub ground: Background,
    pub colours: Colours,
    /// How fast a question takes an answer.
    pub pace: GuardTiming,
    /// What the terminal is, as far as the environment says.
    pub emulator: Emulator,
    /// Where the person's own themes are.
    pub themes: Option<PathBuf>,
    /// Text comes in whole rows, and nothing moves that need not.
    pub reduce_motion: bool,
    /// What is said while the person looks elsewhere.
    pub notices: Notices,
    /// Signs for terminals without Unicode.
    pub ascii: bool,
    /// What the terminal or the locale has not, and what is done about it, where nobody asked for that.
    pub lacks: Option<String>,
    /// The file of prompts sent before; none keeps them in memory only.
    pub history: Option<PathBuf>,
    /// What a prompt is written into that file as.
    pub kept_as: HistoryRedactor,
    /// The person's own keys.
    pub keys: KeyFile,
    /// Vim's keys for the draft.
    pub vim: bool,
    pub clipboard: Clipboard,
    pub shows: OpenInEditor,
    /// Whether the terminal sends what the mouse does.
    pub mouse: bool,
    /// Names of what the status row shows, in its order; none: as usual.
    pub status: Vec<String>,
    /// It is only there for the first questions: no start comes.
    pub sets_up: bool,
    pub version: String,
    /// As people write it: `~/src/greeter`.
    pub cwd: String,
    /// What people write `~` for.
    pub home: Option<PathBuf>,
}

impl Options {
    /// Makes of paths what people write.
    pub fn shorten<'a>(&self, paths: impl Iterator<Item = &'a mut String>) {
        for path in paths {
            if let Some(home) = &self.home {
                *path = crate::text::abbreviate_home(Path::new(path), home);
            }
        }
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Options {
    /// Nothing is set, and nothing is kept anywhere.
    pub fn usual() -> Self {
        Self {
            theme: ThemeChoice::Auto,
            ground: Background::Dark,
            colours: Colours::None,
            pace: GuardTiming::default(),
            emulator: Emulator::default(),
            themes: None,
            reduce_motion: false,
            notices: Notices::Auto,
            ascii: false,
            lacks: None,
            history: None,
            kept_as: HistoryRedactor(Arc::new(str::to_owned)),
            clipboard: Clipboard::default(),
            shows: OpenInEditor(Arc::new(|_| Ok(()))),
            mouse: true,
            keys: KeyFile::default(),
            status: Vec::new(),
            sets_up: false,
            vim: false,
            version: "0.1.0".to_owned(),
            cwd: "~/src/greeter".to_owned(),
            home: Some(PathBuf::from("/home/me")),
        }
    }
}

/// The file that gives keys to actions.
#[derive(Debug, Clone, Default)]
pub struct KeyFile {
    pub path: String,
    /// What it says, or why it cannot be read; nothing where there is none.
    pub text: Option<Result<String, String>>,
}

/// The background of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    Dark,
    Light,
}

impl Background {
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
    /// A built-in theme, or one of the person's own.
    Named(String),
}

/// How a person who looks elsewhere hears that something waits or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notices {
    /// As the terminal can.
    Auto,
    Off,
    Bell,
}

/// What the screen needs besides the events once all is loaded.
#[derive(Debug)]
pub struct Start {
    pub header: Header,
    /// A resumed session, shown and not acted on.
    pub history: Vec<Event>,
    /// Where in the journal that begins, where there is more before it.
    pub older: Option<i64>,
    /// Where it is, as people write it, where that is not where the screen began.
    pub cwd: Option<String>,
    pub model_access: ModelAccess,
    pub trust: Option<TrustQuestion>,
    /// The project brings something, and the person trusts it.
    pub is_trusted: bool,
    /// When the policy ends, in words: `expires in 6 d`.
    pub policy_ends: Option<String>,
    /// `Last here: …`, and a task of this project, where there are such.
    pub last_here: Option<String>,
    pub attempt: Option<String>,
    /// Nothing is set yet and no key is known: the first questions are asked.
    pub is_first: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelAccess {
    Ready,
    /// Nothing can be sent; the message says why and what to do.
    NoKey {
        message: String,
        /// The one that was to answer, where one is set: its key is asked for first.
        model: Option<String>,
    },
    /// The session is looked at while another process has it: nothing is sent, and whatever comes as a command is dropped.
    ReadOnly {
        /// Who has it: `open in process 4711`.
        holder: String,
    },
}

/// What comes before a start, or in its place.
#[derive(Debug)]
pub enum StartupQuestion {
    /// Asked as often as the answer does not help.
    Held(LockQuestion),
    /// There are several sessions: the person chooses one, and no start comes.
    Choose,
}

/// What to do about a session that another process has open.
#[derive(Debug)]
pub struct LockQuestion {
    pub session: SessionId,
    pub pid: u32,
    /// Since when, as people write it, where that is known: `14:02 UTC`.
    pub since: Option<String>,
    /// What the last answer came to, where that did not help: `process 4711 did not end within 5 s`.
    pub problem: Option<String>,
    /// Why it cannot be taken over, where it cannot.
    pub stays: Option<String>,
    pub answer: oneshot::Sender<LockAnswer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAnswer {
    /// Shown, and nothing is sent: a `Start` with `ModelAccess::ReadOnly` follows.
    ReadOnly,
    /// The other process saves and ends, then this one has it: a `Start` follows, or the question again.
    TakeOver,
    /// The screen ends with `ExitReason::Another`; whoever opened it asks which one.
    Another,
    Quit,
}

/// Whether what the project brings in takes effect.
#[derive(Debug)]
pub struct TrustQuestion {
    /// The directory, as people write it.
    pub place: String,
    /// One line for each thing.
    pub items: Vec<String>,
    /// Files that run code when another program opens the folder, each with who reads it.
    pub runs_code: Vec<String>,
    /// What can be read of it before the answer.
    pub files: Vec<ProjectFile>,
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
pub struct ProjectFile {
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

/// Which session the person wants instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionTarget {
    New,
    Session(SessionId),
}

/// Why the screen ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    /// The person left.
    Quit,
    /// The process is to end by this signal.
    Signal(i32),
    /// The terminal is gone.
    Closed,
    /// The session is held elsewhere, and the person wants to choose another one.
    Another,
    /// The person wants to be asked what the first start asks; then it goes on.
    Setup,
    /// The person wants this one; the one that was open is saved.
    Open(SessionTarget),
}

/// What is printed to the main screen afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuiOutcome {
    pub ended: ExitReason,
    pub last_answer: Option<String>,
    /// What was typed and came too late for this screen, or before there was a session to keep it.
    pub typed: String,
    /// What was to be sent to a session that never was there.
    pub unsent: Option<String>,
    /// What answered last, and how much was asked, where there was a session; for the next one.
    pub model: String,
    pub mode: Option<Mode>,
    /// `aye --resume 7f3a…`, where there is something to resume.
    pub resume_hint: Option<String>,
    /// What there is to resume.
    pub session: Option<SessionId>,
}
