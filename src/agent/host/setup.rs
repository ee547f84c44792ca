//! What a session is made of, and what it is given while it runs.

use super::Remote;
use crate::agent::turn::{Options, PolicyChange, SandboxStatus, Unfinished};
use crate::policy::{Enforcer, redact::Redactor};
use crate::ports::{Artifacts, Guidance, Journal, Known, Model, Models, Record, Rules, ToolRouter};
use crate::protocol::{Mode, RunningCommand, SessionId, ToolResult, WorkspaceId};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Everything a session needs.
pub struct Setup {
    pub policy: Enforcer,
    pub options: Options,
    pub model: Arc<dyn Model>,
    /// Those that can take its place.
    pub models: Arc<dyn Models>,
    pub router: Arc<dyn ToolRouter>,
    /// What the project says of its parts, where it is trusted.
    pub guidance: Option<Arc<dyn Guidance>>,
    /// Where the images lie that results name.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    pub journal: Arc<dyn Journal>,
    pub rules: Arc<dyn Rules>,
    pub workspace_id: WorkspaceId,
    pub session_id: SessionId,
    /// For `session_started`.
    pub workspace: String,
    pub mode: Mode,
    /// What the journal holds already; empty for a new session.
    pub records: Vec<Record>,
    pub unfinished: Unfinished,
    /// What became of calls that were under way when the process before this one ended, where that is known by now.
    pub settled: Vec<ToolResult>,
    /// What the disk and their last output tell of others.
    pub known: Known,
    /// What holds commands.
    pub sandbox_status: SandboxStatus,
    /// The commands that go on while the agent works, where the tools have such.
    pub running: Option<watch::Receiver<Vec<RunningCommand>>>,
    /// Whether the list of what changed is told at the end without a question.
    pub tell_changes: bool,
    /// Hides what is secret in what the person says and in what commands print while they run.
    pub redactor: Arc<Redactor>,
    /// What the status row calls the policy.
    pub policy_name: String,
    /// Where other policies come from; none for a session that keeps the one it began with.
    pub policy_updates: Option<PolicyUpdates>,
    /// Whether the front end takes more of what streams; none for one that always does.
    pub room: Option<watch::Receiver<bool>>,
    /// The MCP servers, where there are such.
    pub remote: Option<Remote>,
}

pub type ReloadRequests = mpsc::UnboundedSender<ReloadRequest>;

/// A request to whoever follows the policy's files. Each sender is used once the updates that come of the request were sent.
pub enum ReloadRequest {
    /// Read the files again.
    Files(oneshot::Sender<()>),
    /// Take the tools that MCP servers offer now.
    ServerTools(oneshot::Sender<()>),
}

/// What becomes of the policy's files while a session runs.
pub struct PolicyUpdates {
    pub updates: mpsc::Receiver<PolicyUpdate>,
    /// Asks for the files to be read again.
    pub reload: ReloadRequests,
    /// The mode in force: what holds a command follows it.
    pub modes: watch::Sender<Mode>,
}

pub enum PolicyUpdate {
    /// Another policy, and the tools that keep its limits.
    Taken {
        change: Box<PolicyChange>,
        router: Arc<dyn ToolRouter>,
        redactor: Arc<Redactor>,
    },
    /// A file cannot be taken; the policy in force stays.
    Rejected {
        message: String,
    },
    Told {
        message: String,
    },
}
