//! Queries: requests from a front end about something outside the turn. The turn never receives them, and they never
//! delay it.

use super::{ExportForm, HostRequest, ReviewQuery, SetupRequest, TaskId};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// Data from outside the session: files, custom commands, other sessions.
    LookUp(HostRequest),
    /// Data for first-time setup.
    Setup(SetupRequest),
    /// Review of changes that runs independently of the current task.
    Review(ReviewQuery),
    /// Session events that precede this journal position.
    LoadHistory { before: i64 },
    /// Export the session to `path` or, without a path, to a new file in the workspace.
    Export { form: ExportForm, path: Option<PathBuf> },
    /// Query that requires a running session.
    Session(SessionQuery),
}

/// Query about a running session's tools and servers.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionQuery {
    /// Files changed since the session started or, with a task, since that task first changed them.
    ListChanges {
        task_id: Option<TaskId>,
    },
    /// The session's language servers and their status.
    ListLanguageServers,
    /// The session's artifacts.
    ListArtifacts,
    ReadArtifact {
        uri: String,
    },
    /// Resources offered by connected MCP servers, addressed as `@server:uri`.
    ServerResources {
        words: String,
    },
    /// Prompts offered by connected MCP servers, invoked as `/server:prompt`.
    ServerPrompts,
    /// Text of a single MCP server prompt.
    ServerPrompt {
        server: String,
        name: String,
        arguments: BTreeMap<String, String>,
    },
}
