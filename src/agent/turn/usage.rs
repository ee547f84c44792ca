//! Usage ledger: records the usage of each request at the price of the responding model, and estimates the next
//! request.
//!
//! The estimate consists of the next request's input, corrected by the provider's count for the previous one, and a
//! short response. Input that is certain to be cached counts at the lower price, and everything else counts at the
//! full price.

use super::super::context::estimate;
use super::super::limits::{BYTES_PER_TOKEN, CACHE_SECONDS, OUTPUT_ESTIMATE_TOKENS};
use super::io::InputTime;
use crate::ports::{Delta, ModelError};
use crate::protocol::{ModelFacts, Part, Usage};
use crate::session::{Expense, Totals};
use jiff::Timestamp;

/// Tokens and cost of a session, and the request in progress.
#[derive(Debug, Default)]
pub(super) struct UsageLedger {
    totals: Totals,
    request: Option<OpenRequest>,
    last: Option<CountedRequest>,
    /// Usage of the last task that ended.
    done: Option<TaskUsage>,
}

/// Usage of a single task.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskUsage {
    pub totals: Totals,
    pub step_count: u32,
    pub max_steps: u32,
}

/// Request in progress.
#[derive(Debug)]
struct OpenRequest {
    model: ModelFacts,
    /// Estimated input tokens, corrected by the provider's earlier counts.
    tokens: u64,
    /// Number of response bytes received so far.
    received_bytes: usize,
}

/// Most recent request that received a response and a token count.
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

    /// Adds usage to the totals. Also used to restore a journal.
    pub(crate) fn add(&mut self, spent: Expense) {
        self.totals.add(spent);
    }

    /// Starts a request with this many tokens. The price of the model that receives the request applies, even if
    /// another model is chosen before the response arrives.
    pub(crate) fn begin_request(&mut self, model: ModelFacts, tokens: u64) {
        self.request = Some(OpenRequest { model, tokens, received_bytes: 0 });
    }

    /// Returns the name of the model that received the request in progress, if any.
    pub(crate) fn request_model(&self) -> Option<&str> {
        self.request.as_ref().map(|request| request.model.name.as_str())
    }

    /// Counts part of a response.
    pub(crate) fn on_delta(&mut self, delta: &Delta) {
        let bytes = match delta {
            Delta::Text(text) | Delta::Reasoning(text) => text.len(),
            // The event contains the total length rather than the number of new bytes, so 1 merely marks that data
            // has arrived.
            Delta::ToolCallProgress { .. } => 1,
            Delta::Completed(_) => 0,
        };
        if let Some(request) = &mut self.request {
            request.received_bytes += bytes;
        }
    }

    /// Ends the request in progress with this usage. Returns the cost in US dollars at the price of the model that
    /// received the request, or of `model` if there is no request. Returns `None` if that price is unknown.
    pub(crate) fn charge(&mut self, usage: Usage, model: &ModelFacts) -> Option<f64> {
        let request = self.request.take().map(|request| request.model);
        request.as_ref().unwrap_or(model).cost_usd(&usage)
    }

    /// Ends the request in progress with a response. Values that the provider did not report are estimated.
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

    /// Ends the request in progress without a response. If the provider reported no usage, the usage is estimated
    /// from what was received. A request for which nothing was received is not counted.
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

    /// Estimates the usage of the next request. `at` determines whether the last request is still in the provider's
    /// cache.
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

    /// Resets the task usage when a task begins.
    pub(crate) fn begin_task(&mut self) {
        self.done = None;
    }

    /// Ends a task. Its usage can still be shown afterwards.
    pub(crate) fn end_task(&mut self, usage: Option<TaskUsage>) {
        self.done = usage;
    }

    /// Returns the usage of the last task that ended.
    pub(crate) fn last_task(&self) -> Option<TaskUsage> {
        self.done
    }
}
