//! Model requests made outside of steps: sampling requests from MCP servers, which are subject to the same policy and
//! budgets, and requests made by tools. Their usage counts towards the totals.

use crate::protocol::{ModelFacts, ModelUse, StopReason, Usage};

/// Usage and outcome of a model request made by a server or a tool.
#[derive(Debug)]
pub(crate) struct SamplingUsage {
    /// Server or tool name, as recorded in the journal.
    pub server: String,
    /// Display name that includes the kind, such as `docs (MCP)`.
    pub label: String,
    /// Model that wrote the response.
    pub model: ModelFacts,
    pub usage: Usage,
    /// Fee in US dollars, charged in addition to the price of the tokens.
    pub fee_usd: f64,
    pub estimated: bool,
    pub stop_reason: StopReason,
    pub latency_ms: u64,
}

impl SamplingUsage {
    /// Returns the usage of a tool that called a model.
    pub(crate) fn by_tool(tool_name: &str, used: ModelUse, latency_ms: u64) -> Self {
        let ModelUse { model, usage, fee_usd } = used;
        let (server, label) = (tool_name.to_owned(), tool_name.to_owned());
        Self { server, label, model, usage, fee_usd, estimated: false, stop_reason: StopReason::EndTurn, latency_ms }
    }
}
