//! Events about agents that a session starts.

use super::{CallId, SessionId, Usage};
use serde::{Deserialize, Serialize};

/// Event in the life of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AgentEvent {
    /// An agent starts work on a tool call, in its own session.
    Started {
        /// Tool call that started the agent. If `parentSessionId` is set, the parent agent made the call.
        tool_call_id: CallId,
        /// The agent's own session.
        agent_session_id: SessionId,
        /// Name of the agent.
        agent: String,
        /// Short title of the task.
        title: String,
        /// Task description, written by the model.
        prompt: String,
        max_steps: u32,
        /// Share of each remaining budget that the agent may use, in percent.
        budget_percent: u32,
        /// Session of the parent agent. Absent if the main session started this agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_session_id: Option<SessionId>,
    },
    /// The agent starts a tool call.
    Called {
        agent_session_id: SessionId,
        /// Number of calls so far, including this one.
        calls: u32,
        /// One-line summary of the tool call.
        summary: String,
    },
    /// One of the agent's requests ended. It counts toward the totals of the session and the task, but is not part of
    /// the session's conversation.
    Spent {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Cost of the session so far. Absent if any price is unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_cost_usd: Option<f64>,
        /// Whether some of the tokens or the cost are estimated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// The agent finished.
    Ended {
        agent_session_id: SessionId,
        state: AgentState,
        /// Number of tool calls that the agent made.
        calls: u32,
        /// Number of tokens used by the agent's requests. It is 0 if the agent ended because its parent agent ended.
        tokens: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
}

/// How an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    Completed,
    Failed,
    Stopped,
}
