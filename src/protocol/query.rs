//! Queries: what a front end may ask beside the session. The turn machine sees none of them, and none waits for it.

use super::{ExportForm, LookUp, SetupAsked, TaskId};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// What surrounds the session: files, custom commands, other sessions.
    LookUp(LookUp),
    /// What the first questions want.
    Setup(SetupAsked),
    /// The events before this position of the journal.
    LoadHistory { before: i64 },
    /// Write the session to a file. Without a path: to a new file in the workspace.
    Export { form: ExportForm, path: Option<PathBuf> },
    /// What only a session that runs can answer.
    Session(SessionQuery),
}

/// A query about the tools and servers of a session that runs.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionQuery {
    /// What changed since the session began, or since this task first changed it.
    ListChanges {
        task_id: Option<TaskId>,
    },
    /// The artifacts of the session.
    ListArtifacts,
    ReadArtifact {
        uri: String,
    },
    /// The resources that connected MCP servers offer: `@server:uri`.
    ServerResources {
        words: String,
    },
    /// The prompts that they offer: `/server:prompt`.
    ServerPrompts,
    /// The text of one of these prompts.
    ServerPrompt {
        server: String,
        name: String,
        arguments: BTreeMap<String, String>,
    },
}
