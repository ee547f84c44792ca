//! Agents started by tool calls. Each agent works on its own task and returns a single result.

use super::{BoxFuture, RunContext};
use crate::protocol::{CallId, Command, Effort, Mode, SessionId, ToolError};

/// Task assigned to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentTask {
    pub tool_call_id: CallId,
    /// Agent name.
    pub agent: String,
    /// Short title of the task.
    pub title: String,
    /// Task description, written by the model.
    pub prompt: String,
    /// Instructions from the agent's definition.
    pub instructions: String,
    /// Names of the only tools available to the agent.
    pub tools: Vec<String>,
    /// Names of tools denied to the agent, even if `tools` includes them.
    pub denied_tools: Vec<String>,
    /// Tool entries from the agent's definition; `None` unless at least one of them restricts a tool to certain
    /// commands. Calls outside those restrictions need approval.
    pub scope: Option<Vec<String>>,
    /// Whether the agent is read-only.
    pub reads_only: bool,
    /// Model for the agent, if it differs from the session's model.
    pub model: Option<String>,
    pub effort: Option<Effort>,
    pub terms: AgentTerms,
}

/// Agent limits, as displayed with the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentTerms {
    pub max_steps: u32,
    /// Share of each remaining session budget that the agent may use, in percent.
    pub budget_percent: u32,
}

/// Runs agents. An agent never has more permissions than the session that starts it.
pub(crate) trait AgentRunner: Send + Sync {
    /// Returns the limits for an agent whose call requests `max_steps` steps, if any.
    fn terms(&self, max_steps: Option<u32>) -> AgentTerms;
    /// Returns the session's current mode. Agents cannot run in a more permissive mode.
    fn mode(&self) -> Mode;
    /// Runs an agent until its task ends and returns its last message. Progress is sent to `context.output`.
    fn run(&self, task: AgentTask, context: RunContext) -> BoxFuture<'static, Result<String, ToolError>>;
    /// Attributes subsequent calls to this step. May be called more than once for the same step.
    fn stepped(&self, step: u64);
    /// Stops the agent that runs in the given session.
    fn stop(&self, agent: &SessionId);
    /// Forwards a user decision to the agent that is waiting for it.
    fn pass_command(&self, agent: &SessionId, command: Command);
    /// Stops all agents. The future completes once they have ended.
    fn end_all(&self) -> BoxFuture<'static, ()>;
}
