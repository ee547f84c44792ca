//! Session setup: the components of a session, and its connections while it runs.

use super::policy_updates::PolicyUpdates;
use super::server_requests::ServerConnections;
use crate::agent::turn::{AgentOptions, ResumePolicy, SandboxStatus};
use crate::policy::{Enforcer, redact::Redactor};
use crate::ports::{
    Artifacts, InstructionSource, Journal, Model, Models, Record, RecoveredCalls, Rules, ToolRouter, UserQuestion,
};
use crate::protocol::{Mode, RunningCommand, SessionId, ToolResult, WorkspaceId};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Configuration of the model for summaries.
#[derive(Clone, Default)]
pub(crate) struct SummaryModelSetup {
    /// Configured model name; `None` if the current model writes the summaries.
    pub name: Option<String>,
    /// Opened model; `None` if it cannot be opened yet, for example because the API key is missing.
    pub model: Option<Arc<dyn Model>>,
}

/// Models of a session.
pub(crate) struct ModelSetup {
    pub current: Arc<dyn Model>,
    /// Models that can replace the current one.
    pub all: Arc<dyn Models>,
    pub summary: SummaryModelSetup,
}

/// Policy of a session.
pub(crate) struct PolicySetup {
    pub enforcer: Enforcer,
    /// Name in the status row.
    pub name: String,
    /// Source of updates; `None` for a session with a fixed policy.
    pub updates: Option<PolicyUpdates>,
}

/// State of a session before it starts, from its journal.
pub(crate) struct RestoredSession {
    /// Records read from the journal; empty for a new session.
    pub records: Vec<Record>,
    pub unfinished: ResumePolicy,
    /// Known outcomes of calls that were running when the previous process exited.
    pub settled: Vec<ToolResult>,
    /// Recovery information about the other interrupted calls, taken from the disk and from their saved output.
    pub known: RecoveredCalls,
}

/// Components and settings from which a session is created.
pub(crate) struct Setup {
    pub policy: PolicySetup,
    pub options: AgentOptions,
    pub models: ModelSetup,
    pub router: Arc<dyn ToolRouter>,
    /// Source of instructions for parts of the project, if the project is trusted.
    pub guidance: Option<Arc<dyn InstructionSource>>,
    /// Storage for images in tool results.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    pub journal: Arc<dyn Journal>,
    pub rules: Arc<dyn Rules>,
    pub workspace_id: WorkspaceId,
    pub session_id: SessionId,
    /// Workspace path to report in `session_started`.
    pub workspace: String,
    pub mode: Mode,
    pub restored: RestoredSession,
    /// Status of the command sandbox.
    pub sandbox_status: SandboxStatus,
    /// Receiver for the list of background commands, if the tools support them.
    pub running: Option<watch::Receiver<Vec<RunningCommand>>>,
    /// Whether to report the changed files at the end of the session without being asked.
    pub tell_changes: bool,
    /// Redactor for secrets in user input and in the output of running commands.
    pub redactor: Arc<Redactor>,
    /// Signals whether the front end accepts more streamed data; `None` if it always does.
    pub room: Option<watch::Receiver<bool>>,
    /// MCP servers, if any.
    pub remote: Option<ServerConnections>,
    /// Questions from the model; `None` if no user can answer them.
    pub questions: Option<mpsc::Receiver<UserQuestion>>,
}
