//! Queries: requests from a front end outside the session. They never reach or delay the turn machine.

use super::{ExportForm, HostRequest, ReviewQuery, SetupRequest, TaskId};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// Data outside the session: files, custom commands, other sessions.
    LookUp(HostRequest),
    /// Data for first-time setup.
    Setup(SetupRequest),
    /// Review of changes, independent of the running task.
    Review(ReviewQuery),
    /// Events before this position of the journal.
    LoadHistory { before: i64 },
    /// Export the session to a file; without a path, to a new file in the workspace.
    Export { form: ExportForm, path: Option<PathBuf> },
    /// Query that requires a running session.
    Session(SessionQuery),
}

/// Query about the tools and servers of a running session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionQuery {
    /// Files changed since the session started, or since this task first changed them.
    ListChanges {
        task_id: Option<TaskId>,
    },
    /// Language servers of the session, and their state.
    ListLanguageServers,
    /// Artifacts of the session.
    ListArtifacts,
    ReadArtifact {
        uri: String,
    },
    /// Resources of connected MCP servers: `@server:uri`.
    ServerResources {
        words: String,
    },
    /// Prompts of connected MCP servers: `/server:prompt`.
    ServerPrompts,
    /// Text of one server prompt.
    ServerPrompt {
        server: String,
        name: String,
        arguments: BTreeMap<String, String>,
    },
}
