//! Setup of a session: its components, and its connections while it runs.

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

/// Summary model, as configured.
#[derive(Clone, Default)]
pub(crate) struct SummaryModelSetup {
    /// Model name in the settings; `None` if the model in use writes summaries.
    pub name: Option<String>,
    /// Absent if the model cannot be opened yet, for example without an API key.
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
    /// Records in the journal; empty for a new session.
    pub records: Vec<Record>,
    pub unfinished: ResumePolicy,
    /// Known outcomes of calls that were running when the previous process exited.
    pub settled: Vec<ToolResult>,
    /// Recovery information about the remaining interrupted calls, from the disk and their saved output.
    pub known: RecoveredCalls,
}

/// Components and settings of a session.
pub(crate) struct Setup {
    pub policy: PolicySetup,
    pub options: AgentOptions,
    pub models: ModelSetup,
    pub router: Arc<dyn ToolRouter>,
    /// Instructions for parts of the project, if it is trusted.
    pub guidance: Option<Arc<dyn InstructionSource>>,
    /// Storage of the images in results.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    pub journal: Arc<dyn Journal>,
    pub rules: Arc<dyn Rules>,
    pub workspace_id: WorkspaceId,
    pub session_id: SessionId,
    /// Workspace path, for `session_started`.
    pub workspace: String,
    pub mode: Mode,
    pub restored: RestoredSession,
    /// Sandbox of commands.
    pub sandbox_status: SandboxStatus,
    /// Background commands, if the tools support them.
    pub running: Option<watch::Receiver<Vec<RunningCommand>>>,
    /// Whether the changed files are reported at the end without a request.
    pub tell_changes: bool,
    /// Hides secrets in user input and in the output of running commands.
    pub redactor: Arc<Redactor>,
    /// Whether the front end accepts more streamed data; `None` if it always does.
    pub room: Option<watch::Receiver<bool>>,
    /// MCP servers, if any.
    pub remote: Option<ServerConnections>,
    /// Questions from the model; absent if no user can answer them.
    pub questions: Option<mpsc::Receiver<UserQuestion>>,
}
