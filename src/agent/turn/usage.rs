//! Usage ledger: usage of each request at the price of the responding model, and the estimate for the next request.
//!
//! The estimate covers the input of the next request, corrected with the provider's count of the previous one, and a
//! short response. The cached part counts at the lower price while it is certain to be cached; everything else counts
//! at the full price.

use super::super::context::estimate;
use super::super::limits::{BYTES_PER_TOKEN, CACHE_SECONDS, OUTPUT_ESTIMATE_TOKENS};
use super::io::InputTime;
use crate::ports::{Delta, ModelError};
use crate::protocol::{ModelFacts, Part, Usage};
use crate::session::{Expense, Totals};
use jiff::Timestamp;

/// Tokens and cost of a session, and the current request.
#[derive(Debug, Default)]
pub(super) struct UsageLedger {
    totals: Totals,
    request: Option<OpenRequest>,
    last: Option<CountedRequest>,
    /// Usage of the last finished task.
    done: Option<TaskUsage>,
}

/// Usage of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskUsage {
    pub totals: Totals,
    pub step_count: u32,
    pub max_steps: u32,
}

/// Current request.
#[derive(Debug)]
struct OpenRequest {
    model: ModelFacts,
    /// Estimated tokens, corrected by the provider's earlier count.
    tokens: u64,
    /// Number of bytes received of the response so far.
    received_bytes: usize,
}

/// Last request with a response and a count.
#[derive(Debug)]
struct CountedRequest {
    model: String,
    usage: Usage,
    at: Timestamp,
}

impl UsageLedger {
    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Adds to the totals; also used when restoring a journal.
    pub(crate) fn add(&mut self, spent: Expense) {
        self.totals.add(spent);
    }

    /// Starts a request with this many tokens. Its price is that of the model it is sent to, even if another model is
    /// chosen before the response.
    pub(crate) fn begin_request(&mut self, model: ModelFacts, tokens: u64) {
        self.request = Some(OpenRequest { model, tokens, received_bytes: 0 });
    }

    /// Returns the model of the current request.
    pub(crate) fn request_model(&self) -> Option<&str> {
        self.request.as_ref().map(|request| request.model.name.as_str())
    }

    /// Counts a part of the response.
    pub(crate) fn on_delta(&mut self, delta: &Delta) {
        let bytes = match delta {
            Delta::Text(text) | Delta::Reasoning(text) => text.len(),
            // The event has the total length, not the new bytes; 1 marks that something arrived.
            Delta::ToolCallProgress { .. } => 1,
            Delta::Completed(_) => 0,
        };
        if let Some(request) = &mut self.request {
            request.received_bytes += bytes;
        }
    }

    /// Ends the current request with this usage. Returns its cost at the price of the model it was sent to, or else of
    /// `model`, if the price is known.
    pub(crate) fn charge(&mut self, usage: Usage, model: &ModelFacts) -> Option<f64> {
        let request = self.request.take().map(|request| request.model);
        request.as_ref().unwrap_or(model).cost_usd(&usage)
    }

    /// Ends the current request with a response. Values that the provider did not report are estimated.
    pub(crate) fn end_with_answer(&mut self, usage: Usage, content: &[Part], model: &ModelFacts, at: InputTime) -> Expense {
        let mut counted = usage;
        if usage.input_tokens == 0 {
            counted.input_tokens = self.request.as_ref().map_or(0, |request| request.tokens);
        }
        if usage.output_tokens == 0 && !content.is_empty() {
            counted.output_tokens = estimate(content);
        }
        let sent_to = self.request.as_ref().map_or(model, |request| &request.model);
        let estimated = counted != usage || sent_to.price_is_assumed;
        if let Some(request) = &self.request
            && usage.input_tokens > 0
        {
            let model = request.model.name.clone();
            self.last = Some(CountedRequest { model, usage, at: at.now });
        }
        let cost_usd = self.charge(counted, model);
        Expense { usage: counted, cost_usd, estimated }
    }

    /// Ends the current request without a response. If its provider reported no usage, it is estimated from the
    /// received part; a request without any response is not counted.
    pub(crate) fn end_without_answer(&mut self, error: Option<&ModelError>, model: &ModelFacts) -> Option<Expense> {
        let told = error.and_then(|error| error.usage).filter(|usage| *usage != Usage::default());
        let guessed = self.request.as_ref().filter(|request| request.received_bytes > 0).map(|request| Usage {
            input_tokens: request.tokens,
            output_tokens: (request.received_bytes / BYTES_PER_TOKEN) as u64,
            ..Usage::default()
        });
        let usage = told.or(guessed)?;
        let is_assumed = self.request.as_ref().map_or(model, |request| &request.model).price_is_assumed;
        let cost_usd = self.charge(usage, model);
        Some(Expense { usage, cost_usd, estimated: told.is_none() || is_assumed })
    }

    /// Estimates the usage of the next request. `at` decides whether the last request is still in the provider's cache.
    pub(crate) fn next_request(&self, input_tokens: u64, model: &ModelFacts, max_output_tokens: u64, at: InputTime) -> Usage {
        let input_tokens = input_tokens.min(model.context_window);
        let output_tokens = max_output_tokens.min(OUTPUT_ESTIMATE_TOKENS);
        let mut next = Usage { input_tokens, output_tokens, ..Usage::default() };
        let same = |last: &&CountedRequest| last.model == model.name;
        if let Some(CountedRequest { usage, at: then, .. }) = self.last.as_ref().filter(same) {
            let fresh = at.now.as_second() - then.as_second() < CACHE_SECONDS;
            if fresh {
                next.cache_read_tokens = (usage.cache_read_tokens + usage.cache_write_tokens).min(input_tokens);
            }
            if usage.cache_write_tokens > 0 {
                next.cache_write_tokens = input_tokens - next.cache_read_tokens;
            }
        }
        next
    }

    /// Resets the usage of the task when one begins.
    pub(crate) fn begin_task(&mut self) {
        self.done = None;
    }

    /// Ends a task; its usage can still be shown.
    pub(crate) fn end_task(&mut self, usage: Option<TaskUsage>) {
        self.done = usage;
    }

    /// Returns the usage of the last finished task.
    pub(crate) fn last_task(&self) -> Option<TaskUsage> {
        self.done
    }
}
