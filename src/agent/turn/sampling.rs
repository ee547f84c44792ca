//! What MCP servers ask the model of the session: held to the same policy and the same budgets, and counted with all else.

use super::response::CompletedRequest;
use super::{InputTime, TurnMachine};
use crate::ports::Record;
use crate::protocol::{Failure, FailureKind, ModelFacts, StopReason, Usage};
use crate::session::Spent;

/// What one request of a server came to.
#[derive(Debug)]
pub struct Sampled {
    pub server: String,
    /// The model that answered.
    pub model: ModelFacts,
    pub usage: Usage,
    pub estimated: bool,
    pub stop_reason: StopReason,
    pub latency_ms: u64,
}

impl TurnMachine {
    /// Whether the person is asked before a server asks the model, or why it may not.
    pub fn may_sample(&self, server: &str) -> Result<bool, String> {
        self.policy.may_sample(server).map_err(|denial| format!("{} (rule: {})", denial.reason, denial.rule))
    }

    /// The model that would answer, and how many tokens its answer may have; or what forbids a request of so many.
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
        // All that it may use: nobody knows how much of it a server means to.
        let next = Usage { input_tokens, output_tokens, ..Usage::default() };
        self.budget_check().forbids(&next).map_or_else(|| Ok((self.options.model.clone(), output_tokens)), Err)
    }

    /// Counts it, and says it.
    pub(super) fn sampled(&mut self, sampled: Sampled) {
        let Sampled { server, model, usage, estimated, stop_reason, latency_ms } = sampled;
        let cost_usd = model.cost_usd(&usage);
        self.count(usage, cost_usd);
        self.keep(Record::Sampled { server: server.clone(), usage, cost_usd, estimated });
        let spent = Spent { usage, cost_usd, estimated };
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        self.notice(format!("{server} (MCP) asked {}: {input} tokens in, {output} out", model.name));
        self.tell_of_request(CompletedRequest { spent, stop_reason, latency_ms, model: model.name });
    }
}
