//! Requests outside a session, and their responses: files to mention, custom commands, other sessions.

use super::{
    CustomCommand, Image, MemoryProposal, MemoryRequest, Problem, ReviewUpdate, ServerPrompt, ServerResource, SessionId,
    SetupEvent, TaskId,
};
use serde::{Deserialize, Serialize};

/// Look-up, or action on another session. The model sees neither the request nor its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum HostRequest {
    /// Files and folders that match the search words. Without words, the most recently changed ones.
    Files {
        words: String,
    },
    /// Symbols declared in the workspace. The search text is `#name`, or `src/main.rs#name` to search a single file.
    Symbols {
        words: String,
    },
    /// Files named in pasted text. Of several ways to read the text, the first one in which every file exists is used.
    Dropped {
        pasted: String,
        readings: Vec<Vec<String>>,
    },
    /// Content of the desktop clipboard. Images are stored as artifacts.
    Clipboard,
    /// The user's custom commands and, if the project is trusted, the project's custom commands.
    Commands,
    /// Sessions whose title or messages match the search words or a `/REGEX/`.
    Sessions {
        words: String,
        /// Whether to search all projects.
        all: bool,
        /// Whether to search archived sessions instead.
        #[serde(default)]
        archived: bool,
    },
    /// Most recent messages of a session.
    Session {
        session_id: SessionId,
    },
    /// Complete conversation of a session, as Markdown.
    Transcript {
        session_id: SessionId,
    },
    Rename {
        session_id: SessionId,
        title: String,
    },
    /// Delete a session.
    Delete {
        session_id: SessionId,
    },
    /// Archive or unarchive a session.
    Archive {
        session_id: SessionId,
        archived: bool,
    },
    /// Fork this session with its whole conversation or only the first part.
    Fork {
        session_id: SessionId,
        #[serde(default)]
        until: ForkUntil,
    },
    /// This session together with its forks and ancestors.
    Branches {
        session_id: SessionId,
    },
    /// Locations of aye's files.
    Places,
    /// Save this theme in the user's configuration.
    KeepTheme {
        name: String,
    },
    /// Workspace state for the status row.
    Worktree,
    /// Tasks that run in copies of the workspace. The response is sent now and again whenever a task changes state.
    Tasks,
    /// Start a task in a copy of the workspace. The task stops when this process exits.
    StartTask {
        prompt: String,
    },
    /// Resume a stopped or interrupted task. The task stops when this process exits.
    ResumeTask {
        id: String,
    },
    /// Stop a running task; it can be resumed later.
    StopTask {
        id: String,
    },
    /// Proposals for instruction files.
    Memory(MemoryRequest),
}

/// Portion of a session, from its start, that a fork contains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "until", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ForkUntil {
    #[default]
    End,
    /// The first `count` records.
    Records { count: u64 },
    /// All messages before this prompt, whose text becomes the fork's draft.
    Prompt { task_id: TaskId },
}

/// Result of a `HostRequest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum HostResponse {
    /// Matching files, best matches first.
    Files {
        words: String,
        files: Vec<FoundFile>,
    },
    /// Matching symbols, best matches first.
    Symbols {
        words: String,
        symbols: Vec<FoundSymbol>,
    },
    /// Dropped files. Empty if the pasted text does not name files.
    Dropped {
        pasted: String,
        files: Vec<DroppedFile>,
    },
    Clipboard(ClipboardData),
    Commands {
        commands: Vec<CustomCommand>,
        /// Problems with individual entries, without duplicates.
        notices: Vec<String>,
    },
    Resources {
        words: String,
        resources: Vec<ServerResource>,
    },
    Prompts {
        prompts: Vec<ServerPrompt>,
    },
    /// Text of the MCP server's prompt, or the reason why it is unavailable.
    Prompt {
        server: String,
        name: String,
        text: Result<String, String>,
    },
    Sessions {
        words: String,
        all: bool,
        #[serde(default)]
        archived: bool,
        sessions: Vec<ListedSession>,
        /// Number of sessions in this project.
        here: u64,
        everywhere: u64,
        /// Whether the search is still running, so more results will follow.
        looks_on: bool,
    },
    Session(SessionPreview),
    Transcript {
        session_id: SessionId,
        title: String,
        text: String,
    },
    Renamed {
        session_id: SessionId,
        title: String,
    },
    Deleted {
        session_id: SessionId,
    },
    Archived {
        session_id: SessionId,
        archived: bool,
    },
    /// Sessions in tree order, each listed after its parent.
    Branches {
        branches: Vec<Branch>,
    },
    /// Session created by the fork.
    Forked {
        session_id: SessionId,
    },
    Places {
        rows: Vec<(String, String)>,
    },
    /// Content of the user's keymap file, or the reason why the file cannot be read. `None` if it does not exist.
    Keys {
        path: String,
        text: Option<Result<String, String>>,
    },
    /// File to which the theme was saved, or the reason why it could not be saved.
    ThemeKept {
        name: String,
        kept: Result<String, String>,
    },
    Worktree {
        /// Branch that is checked out.
        branch: Option<String>,
        /// Number of files that differ from the git index, if known.
        changed: Option<u64>,
        /// Whether there are further changed files that were not counted.
        more: bool,
        /// Output of the status command that the user configured.
        line: Option<String>,
    },
    /// Tasks that run in copies of the workspace, most recent first.
    Tasks {
        tasks: Vec<ListedTask>,
    },
    /// Pending proposals for instruction files, oldest first.
    Memory {
        proposals: Vec<MemoryProposal>,
        /// Sentence describing the result of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
        /// Error, if the request failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<Problem>,
    },
    Setup(SetupEvent),
    Review(ReviewUpdate),
    /// The request failed.
    Failed {
        problem: Problem,
    },
}

/// File or folder in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundFile {
    /// Path relative to the workspace. Folder paths end with `/`.
    pub path: String,
    /// Estimated number of tokens in the file, based on its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// Symbol declared in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundSymbol {
    /// Symbol name, such as `greet`.
    pub name: String,
    /// Keyword that declares the symbol, such as `fn` or `class`.
    pub kind: String,
    /// Path relative to the workspace.
    pub path: String,
    /// First line of the declaration, starting at 1.
    pub first: u32,
    pub last: u32,
    /// Estimated number of tokens in the declaration, based on its size.
    pub tokens: u64,
}

/// File dropped onto the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DroppedFile {
    /// Path, relative to the workspace if inside it. Folder paths end with `/`.
    pub path: String,
    /// Whether the file is outside the workspace.
    pub outside: bool,
    pub image: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// Clipboard content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "holds", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ClipboardData {
    /// Image, which is stored as an artifact.
    Image {
        image: Image,
        by: String,
    },
    Text {
        text: String,
    },
    /// There is nothing to paste. The reason is given as a sentence.
    Nothing {
        why: String,
    },
}

/// State of a listed session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedState {
    /// The session is waiting for an approval or for the answer to a question.
    Waits,
    /// The process ended while a task was running.
    Interrupted,
    Paused,
    /// Another process owns the session.
    Elsewhere,
    Done,
}

/// Listed task that runs in a copy of the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTask {
    pub id: String,
    pub state: ListedTaskState,
    pub prompt: String,
    /// Time since the task started: `2 h`, `3 d`.
    pub age: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Number of files that the task changed, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<u64>,
    /// Number of these files that have also changed in the workspace.
    #[serde(default)]
    pub conflicts: u64,
    /// Number of actions since the last prompt that were denied.
    #[serde(default)]
    pub denied: u64,
    /// Result of the check command, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Tool call that is waiting for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Branch of the task's worktree, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl ListedTask {
    /// Describes the state: `done, 1 denied`.
    pub fn state_text(&self) -> String {
        self.state.describe(self.denied)
    }
}

/// State of a task that runs in a copy of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedTaskState {
    Running,
    /// The task's session is open in another front end.
    Open,
    /// The task needs an approval or another decision from the user, and no process is waiting for it.
    NeedsYou,
    Done,
    Failed,
    /// Stopped by the user. It can be resumed.
    Stopped,
    /// The process ended before the task did. It can be resumed.
    Interrupted,
}

impl ListedTaskState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Open => "open",
            Self::NeedsYou => "needs you",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Interrupted => "interrupted",
        }
    }

    /// Describes the state of a task, of whose actions this number was denied: `done, 1 denied`.
    pub fn describe(self, denied: u64) -> String {
        match denied {
            0 => self.as_str().to_owned(),
            denied => format!("{}, {denied} denied", self.as_str()),
        }
    }

    /// Returns whether a process is currently working on the task.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Open)
    }
}

/// Listed session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    pub session_id: SessionId,
    pub title: Option<String>,
    pub state: ListedState,
    /// Session directory as shown to the user, if it differs from the current directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// Time of the last message.
    pub updated: jiff::Timestamp,
    pub created: jiff::Timestamp,
    /// Time since the last message or, for an undone part, since the rewind: `2 h`, `3 d`.
    pub age: String,
    pub model: String,
    /// Branch checked out at the time of the last message, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Reason why the session cannot be opened, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Line that matches the search, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit: Option<String>,
}

/// Session in a tree of forks, or a part of a session that was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    pub session_id: SessionId,
    /// For an undone part, the number of session records that a fork restoring it would contain. Absent for a whole
    /// session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Nesting depth in the tree.
    pub depth: u32,
    pub title: Option<String>,
    /// Number of prompts.
    pub prompts: u64,
    /// Number of prompts that precede the fork point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Time since the last message or, for an undone part, since the rewind: `2 h`, `3 d`.
    pub age: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
}

/// End of a session's conversation, previewed before the session is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPreview {
    pub session_id: SessionId,
    pub lines: Vec<PreviewLine>,
    /// Facts such as `14 steps · 76k tokens`, and notes about what has changed since the last message.
    pub facts: Vec<String>,
}

/// Line in a session preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviewLine {
    pub kind: PreviewLineKind,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreviewLineKind {
    Prompt,
    Answer,
    Done,
    Failed,
    Denied,
    Waits,
    Note,
}
