//! Sampling requests of MCP servers: subject to the same policy and budgets, and counted with everything else.

use super::response::CompletedRequest;
use super::{InputTime, TurnMachine};
use crate::ports::Record;
use crate::protocol::{Failure, FailureKind, ModelFacts, StopReason, Usage};
use crate::session::Spent;

/// Result of a sampling request.
#[derive(Debug)]
pub struct Sampled {
    pub server: String,
    /// Model that responded.
    pub model: ModelFacts,
    pub usage: Usage,
    pub estimated: bool,
    pub stop_reason: StopReason,
    pub latency_ms: u64,
}

impl TurnMachine {
    /// Returns whether the user is asked before the server uses the model; the error says why it may not.
    pub fn may_sample(&self, server: &str) -> Result<bool, String> {
        self.policy.may_sample(server).map_err(|denial| format!("{} (rule: {})", denial.reason, denial.rule))
    }

    /// Returns the model and the maximum tokens of its response; the error says why such a request may not be sent.
    pub fn sampling(&mut self, input_tokens: u64, wanted: u64, at: InputTime) -> Result<(ModelFacts, u64), Failure> {
        if let Some(failure) = self.forbids(at) {
            return Err(failure);
        }
        let output_tokens = self.output_limit().min(wanted);
        let window = self.options.model.context_window;
        if window > 0 && input_tokens + output_tokens > window {
            let message = format!("about {input_tokens} input tokens do not fit the model's context window ({window})");
            return Err(Failure::new(FailureKind::ContextTooLong, message, "send a shorter request"));
        }
        // The full output limit counts, because the actual usage is unknown.
        let next = Usage { input_tokens, output_tokens, ..Usage::default() };
        self.budget_check().forbids(&next).map_or_else(|| Ok((self.options.model.clone(), output_tokens)), Err)
    }

    /// Counts and reports the usage.
    pub(super) fn sampled(&mut self, sampled: Sampled) {
        let Sampled { server, model, usage, estimated, stop_reason, latency_ms } = sampled;
        let cost_usd = model.cost_usd(&usage);
        self.count(usage, cost_usd);
        self.keep(Record::Sampled { server: server.clone(), usage, cost_usd, estimated });
        let spent = Spent { usage, cost_usd, estimated };
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        self.notice(format!("{server} (MCP) used {}: {input} tokens in, {output} out", model.name));
        self.tell_of_request(CompletedRequest { spent, stop_reason, latency_ms, model: model.name });
    }
}
