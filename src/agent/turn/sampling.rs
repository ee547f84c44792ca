//! Sampling requests of MCP servers: subject to the same policy and budgets, and counted with everything else.

use crate::protocol::{ModelFacts, StopReason, Usage};

/// Result of a sampling request.
#[derive(Debug)]
pub(crate) struct Sampled {
    pub server: String,
    /// Model that responded.
    pub model: ModelFacts,
    pub usage: Usage,
    pub estimated: bool,
    pub stop_reason: StopReason,
    pub latency_ms: u64,
}
