//! Global command-line options, and the choice of a session.

use crate::protocol::Mode;
use std::path::PathBuf;

/// The global options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Common {
    pub directory: Option<PathBuf>,
    /// The name of a profile of `config.toml`.
    pub profile: Option<String>,
    /// The model, as `PROVIDER/NAME`.
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
    /// The task that this process works on, in a copy of the workspace.
    pub copy: Option<WorkspaceCopy>,
}

/// The copy of the workspace in which this process works, and the data of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspaceCopy {
    /// The data directory of the session. Nothing in it belongs to the real workspace.
    pub data: PathBuf,
    /// True if a layer covers the workspace. The repository is then not part of the copy.
    pub is_layer: bool,
    /// The command that checks the result of the task.
    pub check: Option<String>,
}

/// Options of commands that run a single task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunOptions {
    /// The only tools of the run, as given; `None` for all tools.
    pub allowed_tools: Option<Vec<String>>,
    /// The file with the JSON Schema of the final response.
    pub output_schema: Option<PathBuf>,
    /// True if the session is not saved.
    pub is_ephemeral: bool,
    /// The file to which changes are written, instead of the workspace.
    pub patch: Option<PathBuf>,
    /// The goal options, apart from its text, which is the prompt.
    pub goal: Option<GoalOptions>,
}

/// Options of a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoalOptions {
    /// The command that decides whether the goal is reached.
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
    /// The latest session of this project.
    Latest,
    /// A session chosen from a list; without a screen, the latest one.
    Pick,
    /// A session ID or its first digits.
    Id(String),
    /// A copy of this session, or of the latest one of this project.
    Fork(Option<String>),
}

/// Approver of calls for which the policy requires approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    Person,
    /// `--yes`
    Yes,
}
