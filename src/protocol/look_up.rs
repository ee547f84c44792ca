//! Look-ups beside a session: files to mention, custom commands, other sessions.

use super::{CustomCommand, Image, ServerPrompt, ServerResource, SessionId, SetupTold, TaskId};
use serde::{Deserialize, Serialize};

/// What to look up, or to do to a session that is not the one that runs. Nothing of it is told to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum LookUp {
    /// The files and folders these letters mean; without letters those that changed last.
    Files {
        words: String,
    },
    /// What is declared in the files of the workspace: `#name`, or `src/main.rs#name` in this one.
    Symbols {
        words: String,
    },
    /// Which files a pasted text names, by the first of its readings whose files are all there.
    Dropped {
        pasted: String,
        readings: Vec<Vec<String>>,
    },
    /// What the clipboard of this desktop holds; an image is kept.
    Clipboard,
    /// The person's own commands, and the project's once it is trusted.
    Commands,
    /// Sessions with these words in their title, or in what was said: a text, or `/REGEX/`.
    Sessions {
        words: String,
        /// Those of all projects.
        all: bool,
        /// Those that were put away, in the place of the others.
        #[serde(default)]
        archived: bool,
    },
    /// What was said last in one of them.
    Session {
        session_id: SessionId,
    },
    /// All that was said in one of them, as Markdown.
    Transcript {
        session_id: SessionId,
    },
    Rename {
        session_id: SessionId,
        title: String,
    },
    /// Forget one of them.
    Delete {
        session_id: SessionId,
    },
    /// Put one of them away, or take it out again.
    Archive {
        session_id: SessionId,
        archived: bool,
    },
    /// Make a new one with all that was said in this one, or with its beginning.
    Fork {
        session_id: SessionId,
        #[serde(default)]
        until: ForkUntil,
    },
    /// This session and those that branch off from it or with it.
    Branches {
        session_id: SessionId,
    },
    /// Where things lie, for the person.
    Places,
    /// Keep this theme in the person's settings.
    KeepTheme {
        name: String,
    },
    /// What the status row says of the workspace: after something changed there.
    Worktree,
}

/// How much of a session its copy begins with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "until", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ForkUntil {
    #[default]
    End,
    /// So many of its records.
    Records { count: u64 },
    /// What was said before this prompt, which becomes the draft of the copy.
    Prompt { task_id: TaskId },
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum LookedUp {
    /// The best first.
    Files {
        words: String,
        files: Vec<FoundFile>,
    },
    /// The best first.
    Symbols {
        words: String,
        symbols: Vec<FoundSymbol>,
    },
    /// None where it names no files.
    Dropped {
        pasted: String,
        files: Vec<DroppedFile>,
    },
    Clipboard(Clipped),
    Commands {
        commands: Vec<CustomCommand>,
        /// What is wrong with some of them, each said once.
        notices: Vec<String>,
    },
    Resources {
        words: String,
        resources: Vec<ServerResource>,
    },
    Prompts {
        prompts: Vec<ServerPrompt>,
    },
    /// What the server would have said, or why nothing came.
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
        /// How many there are in this project and in all.
        here: u64,
        everywhere: u64,
        /// There is more to come.
        looks_on: bool,
    },
    Session(SessionLook),
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
    /// Each behind the one it branches off from.
    Branches {
        branches: Vec<Branch>,
    },
    /// The new one.
    Forked {
        session_id: SessionId,
    },
    Places {
        rows: Vec<(String, String)>,
    },
    /// The file of the person's keys: what it says, or why it cannot be read; nothing where there is none.
    Keys {
        path: String,
        text: Option<Result<String, String>>,
    },
    /// The theme was kept in this file, or why it was not.
    ThemeKept {
        name: String,
        kept: Result<String, String>,
    },
    Worktree {
        /// The branch that is checked out.
        branch: Option<String>,
        /// Files that are not as git took them in last, where that can be said.
        changed: Option<u64>,
        /// Not all was looked at: there may be more.
        more: bool,
        /// What the person's own command said.
        line: Option<String>,
    },
    Setup(SetupTold),
    /// It could not be done; why, in a sentence.
    Failed {
        message: String,
    },
}

/// A file or a folder of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundFile {
    /// Relative to the workspace; of a folder with a `/` at its end.
    pub path: String,
    /// What it would take of a window, estimated by its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// Something that a file declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundSymbol {
    /// `greet`
    pub name: String,
    /// `fn`, `class`: the word of its language.
    pub kind: String,
    /// Relative to the workspace.
    pub path: String,
    /// Its lines, counted from 1.
    pub first: u32,
    pub last: u32,
    /// What they would take of a window, estimated by their size.
    pub tokens: u64,
}

/// A file that was dropped on the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DroppedFile {
    /// Relative to the workspace where it is in it; of a folder with a `/` at its end.
    pub path: String,
    /// Whether it lies outside of the workspace.
    pub outside: bool,
    pub image: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// What was in the clipboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "holds", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Clipped {
    /// It is kept as an artifact now.
    Image {
        image: Image,
        by: String,
    },
    Text {
        text: String,
    },
    /// Why there is nothing to paste, in a sentence.
    Nothing {
        why: String,
    },
}

/// Where a session stands, for a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedState {
    /// A question is open.
    Waits,
    /// Its process ended in the middle of a task.
    Interrupted,
    Paused,
    /// Another process has it.
    Elsewhere,
    Done,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    pub session_id: SessionId,
    pub title: Option<String>,
    pub state: ListedState,
    /// Its directory, as people write it, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<String>,
    /// When something was said in it last.
    pub updated: jiff::Timestamp,
    pub created: jiff::Timestamp,
    /// `2 h`, `3 d`.
    pub age: String,
    pub model: String,
    /// The branch that was checked out then, where git tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Why it cannot be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// The line in which the words were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit: Option<String>,
}

/// A session of a family, or a part of one that was gone back from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    pub session_id: SessionId,
    /// Of a part that was gone back from: with so many records of the session it can be gone on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// How many stand above it.
    pub depth: u32,
    pub title: Option<String>,
    /// How many prompts there are in it.
    pub prompts: u64,
    /// How many prompts there were before where it branches off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// `2 h`, `3 d`.
    pub age: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
}

/// The end of a session, to be looked at before it is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionLook {
    pub session_id: SessionId,
    pub lines: Vec<LookLine>,
    /// `14 steps · 76k tokens`, and what is different now.
    pub facts: Vec<String>,
}

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LookLine {
    pub kind: LookKind,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LookKind {
    Prompt,
    Answer,
    Done,
    Failed,
    Denied,
    Waits,
    Note,
}
