//! Global command-line options, and how a session is selected.

use crate::protocol::Mode;
use std::path::PathBuf;

/// Options that are common to all commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Common {
    pub directory: Option<PathBuf>,
    /// Name of a profile in `config.toml`.
    pub profile: Option<String>,
    /// Model, in the form `PROVIDER/NAME`.
    pub model: Option<String>,
    pub mode: Option<Mode>,
    /// The mode of a session for which the user chose none, instead of that in the settings.
    pub fallback_mode: Option<Mode>,
    pub policy: Option<PathBuf>,
    pub add_dirs: Vec<PathBuf>,
    pub trust: Trust,
    pub set: Vec<(String, String)>,
    pub max_steps: Option<u32>,
    /// `--take-over`
    pub take_over: bool,
    pub color: Color,
    /// `--plain`
    pub plain: bool,
    pub verbosity: u8,
    /// The task's copy of the workspace, if this process runs a task.
    pub copy: Option<WorkspaceCopy>,
}

/// Copy of the workspace in which this process works, and the data of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspaceCopy {
    /// Data directory of the session. It contains nothing that refers to the real workspace.
    pub data: PathBuf,
    /// Whether the copy is a copy-on-write layer over the workspace, in which case it does not include the repository.
    pub is_layer: bool,
    /// The command that checks the result of the task.
    pub check: Option<String>,
}

/// Options of commands that run a single task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunOptions {
    /// Tools to which the run is restricted, as given on the command line. `None` allows all tools.
    pub allowed_tools: Option<Vec<String>>,
    /// File that contains the JSON Schema for the final response.
    pub output_schema: Option<PathBuf>,
    /// Whether the session is not saved.
    pub is_ephemeral: bool,
    /// File to which changes are written in place of the workspace.
    pub patch: Option<PathBuf>,
    /// Options of the goal. The goal's text is the prompt.
    pub goal: Option<GoalOptions>,
}

/// Options of a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoalOptions {
    /// Command that determines whether the goal has been reached.
    pub check: String,
    pub time_ms: Option<u64>,
    pub max_rounds: u32,
}

/// Whether `--trust` was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    #[default]
    AsRecorded,
    ForThisRun,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Color {
    #[default]
    Auto,
    Never,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    New,
    /// The latest session in this project.
    Latest,
    /// A session that the user chooses from a list. Without a screen, the latest session.
    Pick,
    /// The session with this ID, which may be abbreviated to its first digits.
    Id(String),
    /// A copy of this session or, if it is `None`, of the latest session in this project.
    Fork(Option<String>),
}

/// Approver of calls that need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    Person,
    /// `--yes`
    Yes,
}
