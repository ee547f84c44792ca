//! Agents that a call starts. Each works on its own task and returns one result.

use super::{BoxFuture, RunContext};
use crate::protocol::{CallId, Command, Effort, Mode, SessionId, ToolError};

/// Task of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentTask {
    pub tool_call_id: CallId,
    /// Name of the agent.
    pub agent: String,
    /// Short title of the task.
    pub title: String,
    /// Task as the model describes it.
    pub prompt: String,
    /// Instructions of the agent.
    pub instructions: String,
    /// Names of its tools; it has no other tools.
    pub tools: Vec<String>,
    /// Names of tools that the agent lacks, even if `tools` names them.
    pub denied_tools: Vec<String>,
    /// Tool entries of the agent's definition, if some entries limit a tool to certain commands. Other calls need
    /// approval.
    pub scope: Option<Vec<String>>,
    /// Whether the agent only reads.
    pub reads_only: bool,
    /// Model of the agent, if it differs from the session's.
    pub model: Option<String>,
    pub effort: Option<Effort>,
    pub terms: AgentTerms,
}

/// Limits of an agent, as displayed with its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentTerms {
    pub max_steps: u32,
    /// Share of each remaining budget, in percent.
    pub budget_percent: u32,
}

/// Runs agents. An agent has at most the permissions of the session that starts it.
pub(crate) trait AgentRunner: Send + Sync {
    /// Returns the limits of an agent that requests this number of steps.
    fn terms(&self, max_steps: Option<u32>) -> AgentTerms;
    /// Returns the current mode of the session, which its agents cannot exceed.
    fn mode(&self) -> Mode;
    /// Runs an agent until its task ends, and returns its last message. Progress is sent to the output of `context`.
    fn run(&self, task: AgentTask, context: RunContext) -> BoxFuture<'static, Result<String, ToolError>>;
    /// Assigns the following calls to this step. May be called several times for the same step.
    fn stepped(&self, step: u64);
    /// Stops an agent, by the ID of its session.
    fn stop(&self, agent: &SessionId);
    /// Forwards a decision about an approval to the agent that waits for it.
    fn pass_command(&self, agent: &SessionId, command: Command);
    /// Stops all agents; completes when they have ended.
    fn end_all(&self) -> BoxFuture<'static, ()>;
}
