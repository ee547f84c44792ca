//! Requests outside a session, and their responses: files to mention, custom commands, other sessions.

use super::{
    CustomCommand, Image, MemoryProposal, MemoryRequest, Problem, ReviewUpdate, ServerPrompt, ServerResource, SessionId,
    SetupEvent, TaskId,
};
use serde::{Deserialize, Serialize};

/// Look-up, or an action on another session. The model does not see the request or its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum HostRequest {
    /// Files and folders that match the text; for an empty text, the most recently changed ones.
    Files {
        words: String,
    },
    /// Symbols declared in the workspace: `#name`, or `src/main.rs#name` in one file.
    Symbols {
        words: String,
    },
    /// Files that a pasted text names, in the first interpretation for which all files exist.
    Dropped {
        pasted: String,
        readings: Vec<Vec<String>>,
    },
    /// Content of the desktop clipboard. An image is stored as an artifact.
    Clipboard,
    /// The user's commands, and the project's commands if it is trusted.
    Commands,
    /// Sessions whose title or messages match some text or a `/REGEX/`.
    Sessions {
        words: String,
        /// Whether to search all projects.
        all: bool,
        /// Whether to search archived sessions instead.
        #[serde(default)]
        archived: bool,
    },
    /// Last messages of a session.
    Session {
        session_id: SessionId,
    },
    /// Whole conversation of a session, as Markdown.
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
    /// Fork this session with all or the first part of its conversation.
    Fork {
        session_id: SessionId,
        #[serde(default)]
        until: ForkUntil,
    },
    /// This session with its forks and ancestors.
    Branches {
        session_id: SessionId,
    },
    /// File locations.
    Places,
    /// Save this theme in the user's settings.
    KeepTheme {
        name: String,
    },
    /// State of the workspace for the status row.
    Worktree,
    /// Tasks in copies of the workspace. Sent now and whenever a task changes its state.
    Tasks,
    /// Start a task in a copy of the workspace. It ends with this process.
    StartTask {
        prompt: String,
    },
    /// Continue a stopped or interrupted task. It ends with this process.
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

/// First part of a session that a fork contains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "until", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ForkUntil {
    #[default]
    End,
    /// This number of records.
    Records { count: u64 },
    /// All messages before this prompt, which becomes the draft of the fork.
    Prompt { task_id: TaskId },
}

/// Result of a `HostRequest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum HostResponse {
    /// Best matches first.
    Files {
        words: String,
        files: Vec<FoundFile>,
    },
    /// Best matches first.
    Symbols {
        words: String,
        symbols: Vec<FoundSymbol>,
    },
    /// Dropped files; empty if the text names no files.
    Dropped {
        pasted: String,
        files: Vec<DroppedFile>,
    },
    Clipboard(ClipboardData),
    Commands {
        commands: Vec<CustomCommand>,
        /// Problems with some of the entries, without duplicates.
        notices: Vec<String>,
    },
    Resources {
        words: String,
        resources: Vec<ServerResource>,
    },
    Prompts {
        prompts: Vec<ServerPrompt>,
    },
    /// Text of the server prompt, or the reason why it is unavailable.
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
        /// Number of sessions in this project, and in all projects.
        here: u64,
        everywhere: u64,
        /// Whether more results will follow.
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
    /// Sessions, each after its parent.
    Branches {
        branches: Vec<Branch>,
    },
    /// The new session.
    Forked {
        session_id: SessionId,
    },
    Places {
        rows: Vec<(String, String)>,
    },
    /// Content of the user's keymap file, or the reason why it cannot be read; absent without such
    /// a file.
    Keys {
        path: String,
        text: Option<Result<String, String>>,
    },
    /// File in which the theme was saved, or the reason for a failure.
    ThemeKept {
        name: String,
        kept: Result<String, String>,
    },
    Worktree {
        /// Checked-out branch.
        branch: Option<String>,
        /// Number of files that differ from the git index, if known.
        changed: Option<u64>,
        /// Whether further files were not counted.
        more: bool,
        /// Output of the user's status command.
        line: Option<String>,
    },
    /// Tasks in copies of the workspace, latest first.
    Tasks {
        tasks: Vec<ListedTask>,
    },
    /// Open proposals for instruction files, oldest first.
    Memory {
        proposals: Vec<MemoryProposal>,
        /// The result of the request, as a sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
        /// Reason for a failure of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<Problem>,
    },
    Setup(SetupEvent),
    Review(ReviewUpdate),
    /// The look-up failed.
    Failed {
        problem: Problem,
    },
}

/// File or folder of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundFile {
    /// Path relative to the workspace; ends with `/` for a folder.
    pub path: String,
    /// Estimated tokens of its content, based on its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// Symbol declared in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundSymbol {
    /// Name: `greet`
    pub name: String,
    /// Keyword of the language: `fn`, `class`.
    pub kind: String,
    /// Path relative to the workspace.
    pub path: String,
    /// First and last line, counted from 1.
    pub first: u32,
    pub last: u32,
    /// Estimated tokens of these lines, based on their size.
    pub tokens: u64,
}

/// File dropped on the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DroppedFile {
    /// Path, relative to the workspace if inside it; ends with `/` for a folder.
    pub path: String,
    /// Whether the file is outside the workspace.
    pub outside: bool,
    pub image: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// Content of the clipboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "holds", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ClipboardData {
    /// Image, stored as an artifact.
    Image {
        image: Image,
        by: String,
    },
    Text {
        text: String,
    },
    /// Reason why there is nothing to paste, as a sentence.
    Nothing {
        why: String,
    },
}

/// State of a session in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedState {
    /// An approval or question is open.
    Waits,
    /// The process ended during a task.
    Interrupted,
    Paused,
    /// Another process owns the session.
    Elsewhere,
    Done,
}

/// Task in a copy of the workspace, in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTask {
    pub id: String,
    pub state: ListedTaskState,
    pub prompt: String,
    /// Time since its start: `2 h`, `3 d`.
    pub age: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Number of changed files, if they can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<u64>,
    /// Number of these files that also changed in the workspace.
    #[serde(default)]
    pub conflicts: u64,
    /// Number of actions since the last prompt that were denied.
    #[serde(default)]
    pub denied: u64,
    /// Result of the check command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Call that waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Branch of its worktree, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl ListedTask {
    /// Describes the state: `done, 1 denied`.
    pub fn state_text(&self) -> String {
        self.state.describe(self.denied)
    }
}

/// State of a task in a copy of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedTaskState {
    Running,
    /// Open in another front end.
    Open,
    /// An approval or another decision of the user is pending, and no process waits for it.
    NeedsYou,
    Done,
    Failed,
    /// Stopped by the user. The task can be resumed.
    Stopped,
    /// The process ended before the task did. The task can be resumed.
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

    /// Returns whether a process is working on the task.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Open)
    }
}

/// Session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    pub session_id: SessionId,
    pub title: Option<String>,
    pub state: ListedState,
    /// Directory of the session for display, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// Time of the last message.
    pub updated: jiff::Timestamp,
    pub created: jiff::Timestamp,
    /// Age: `2 h`, `3 d`.
    pub age: String,
    pub model: String,
    /// Branch checked out at that time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Reason why the session cannot be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Line that matches the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit: Option<String>,
}

/// Session in a tree of forks, or an undone part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    pub session_id: SessionId,
    /// For an undone part: the number of records of the session to fork with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Depth in the tree.
    pub depth: u32,
    pub title: Option<String>,
    /// Number of prompts.
    pub prompts: u64,
    /// Number of prompts before the fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Age: `2 h`, `3 d`.
    pub age: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
}

/// Last part of a session, for a preview before it is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPreview {
    pub session_id: SessionId,
    pub lines: Vec<PreviewLine>,
    /// Facts such as `14 steps · 76k tokens`, and changes since then.
    pub facts: Vec<String>,
}

/// One line of a session preview.
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
