//! Events of agents that a session started.

use super::{CallId, SessionId, Usage};
use serde::{Deserialize, Serialize};

/// Event of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AgentEvent {
    /// An agent starts to work on a call, in its own session.
    Started {
        /// Call that started the agent; with `parentSessionId`, it is a call of that agent.
        tool_call_id: CallId,
        /// Session of the agent.
        agent_session_id: SessionId,
        /// Name of the agent.
        agent: String,
        /// Short title of the task.
        title: String,
        /// The task as the model describes it.
        prompt: String,
        max_steps: u32,
        /// Share of each remaining budget, in percent.
        budget_percent: u32,
        /// Session of the agent that started this one; absent if the session itself did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_session_id: Option<SessionId>,
    },
    /// An agent starts a call.
    Called {
        agent_session_id: SessionId,
        /// Number of calls so far.
        calls: u32,
        /// One-line summary of the call.
        summary: String,
    },
    /// A request of an agent ended. It counts toward the totals of the session and its task, but is not part of its
    /// conversation.
    Spent {
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Cost of the session so far, if all prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_cost_usd: Option<f64>,
        /// Whether tokens and cost are partly estimated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// An agent ended.
    Ended {
        agent_session_id: SessionId,
        state: AgentState,
        /// Number of tool calls made by the agent.
        calls: u32,
        /// Number of tokens used by the agent's requests; 0 for an agent that ended with the agent that started it.
        tokens: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
}

/// Outcome of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    Completed,
    Failed,
    Stopped,
}
