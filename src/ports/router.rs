//! Tools: planned first, judged, then run with the permit.

use super::BoxFuture;
use crate::policy::Permit;
use crate::protocol::{Action, Proposal, ToolCall, ToolDefinition, ToolError, ToolResult};
use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What a call would touch and what it would change; nothing is written yet.
pub struct Plan {
    pub call: ToolCall,
    /// The tool's canonical name.
    pub tool_name: String,
    /// One line for people: `Edit src/main.rs`, `$ cargo test`.
    pub summary: String,
    pub actions: Vec<Action>,
    /// Present for tools that change something.
    pub proposal: Option<Proposal>,
    /// Whether running it can change anything; reads need no commit before they run.
    pub changes: bool,
    /// Files whose content it would run: a call before it may still change them.
    pub runs: Vec<PathBuf>,
    /// For commands: seconds until it is killed.
    pub timeout_seconds: u64,
    /// What the tool keeps between plan and run; only its own router looks inside.
    pub payload: Box<dyn Any + Send>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("call", &self.call).field("actions", &self.actions).finish_non_exhaustive()
    }
}

/// What a running tool is given.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// Live output, lossy: a full channel drops the chunk, the result has it all.
    pub output: mpsc::Sender<String>,
    /// Fires when the person wants running commands killed.
    pub kill: CancellationToken,
}

pub trait ToolRouter: Send + Sync {
    /// What the model may be offered, canonical names only.
    fn definitions(&self) -> Vec<ToolDefinition>;
    /// The capability a tool needs; `None` for a name nobody knows.
    fn capability(&self, tool_name: &str) -> Option<&'static str>;
    /// Reads what it must to say what would happen; writes nothing.
    fn plan(&self, call: ToolCall) -> BoxFuture<'_, Result<Plan, ToolError>>;
    /// Does what was planned. The permit must cover the plan's actions, else `POLICY_DENIED`.
    /// What changed since the plan was made is never overwritten: `CONFLICT`.
    fn run(&self, plan: Plan, permit: Permit, context: RunContext) -> BoxFuture<'_, ToolResult>;
}
