//! Usage ledger: what each request used at the price of the model that answers, and what the next one may use.
//!
//! The estimate of the next request is what is to be sent, corrected by what the provider counted of the request before it, and a
//! modest answer. What the provider kept of that request counts at its lower price as long as it surely still has it, all else
//! at the full one.

use super::super::context::estimate;
use super::super::limits::{BYTES_PER_TOKEN, CACHE_SECONDS, OUTPUT_GUESS_TOKENS};
use super::InputTime;
use crate::ports::{Delta, ModelError};
use crate::protocol::{ModelFacts, Part, Usage};
use crate::session::{Spent, Totals};
use jiff::Timestamp;

/// The tokens and the cost of a session, and the request that is under way.
#[derive(Debug, Default)]
pub(super) struct UsageLedger {
    totals: Totals,
    request: Option<OpenRequest>,
    last: Option<CountedRequest>,
    /// The numbers of the last task that was done.
    done: Option<TaskUsage>,
}

/// A task in numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskUsage {
    pub totals: Totals,
    pub step_count: u32,
    pub max_steps: u32,
}

/// The request that is under way.
#[derive(Debug)]
struct OpenRequest {
    model: ModelFacts,
    /// As estimated, and corrected by what the provider counted before.
    tokens: u64,
    /// Bytes of the answer so far.
    heard_bytes: usize,
}

/// The last request that was answered and counted.
#[derive(Debug)]
struct CountedRequest {
    model: String,
    usage: Usage,
    at: Timestamp,
}

impl UsageLedger {
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Adds to the sums, also from the journal.
    pub fn add(&mut self, spent: Spent) {
        self.totals.add(spent);
    }

    /// A request of so many tokens is sent; its price is that of the model it goes to, whatever is chosen while it answers.
    pub fn begin_request(&mut self, model: ModelFacts, tokens: u64) {
        self.request = Some(OpenRequest { model, tokens, heard_bytes: 0 });
    }

    /// The model that the request under way went to.
    pub fn request_model(&self) -> Option<&str> {
        self.request.as_ref().map(|request| request.model.name.as_str())
    }

    /// Counts what came of an answer.
    pub fn on_delta(&mut self, delta: &Delta) {
        let bytes = match delta {
            Delta::Text(text) | Delta::Reasoning(text) => text.len(),
            // All of its arguments until now, not those that are new: at least something came.
            Delta::ToolCallProgress { .. } => 1,
            Delta::Completed(_) => 0,
        };
        if let Some(request) = &mut self.request {
            request.heard_bytes += bytes;
        }
    }

    /// Ends the request under way, which used this. Returns what it cost, where the price is known: that of the model it went to,
    /// else of `model`.
    pub fn charge(&mut self, usage: Usage, model: &ModelFacts) -> Option<f64> {
        let request = self.request.take().map(|request| request.model);
        request.as_ref().unwrap_or(model).cost_usd(&usage)
    }

    /// Ends the request under way with an answer. What its provider did not count is estimated.
    pub fn end_with_answer(&mut self, usage: Usage, content: &[Part], model: &ModelFacts, at: InputTime) -> Spent {
        let mut counted = usage;
        if usage.input_tokens == 0 {
            counted.input_tokens = self.request.as_ref().map_or(0, |request| request.tokens);
        }
        if usage.output_tokens == 0 && !content.is_empty() {
            counted.output_tokens = estimate(content);
        }
        let estimated = counted != usage;
        if let Some(request) = &self.request
            && usage.input_tokens > 0
        {
            let model = request.model.name.clone();
            self.last = Some(CountedRequest { model, usage, at: at.now });
        }
        let cost_usd = self.charge(counted, model);
        Spent { usage: counted, cost_usd, estimated }
    }

    /// Ends the request under way without an answer. Where its provider said nothing of what it used, what came of it is estimated;
    /// of a request to which nothing came back nothing is counted.
    pub fn end_without_answer(&mut self, error: Option<&ModelError>, model: &ModelFacts) -> Option<Spent> {
        let told = error.and_then(|error| error.usage).filter(|usage| *usage != Usage::default());
        let guessed = self.request.as_ref().filter(|request| request.heard_bytes > 0).map(|request| Usage {
            input_tokens: request.tokens,
            output_tokens: (request.heard_bytes / BYTES_PER_TOKEN) as u64,
            ..Usage::default()
        });
        let usage = told.or(guessed)?;
        let cost_usd = self.charge(usage, model);
        Some(Spent { usage, cost_usd, estimated: told.is_none() })
    }

    /// What the next request may use. `at`: what a provider keeps of the last request it keeps for some minutes.
    pub fn next_request(&self, input_tokens: u64, model: &ModelFacts, max_output_tokens: u64, at: InputTime) -> Usage {
        let input_tokens = input_tokens.min(model.context_window);
        let output_tokens = max_output_tokens.min(OUTPUT_GUESS_TOKENS);
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

    /// A task begins.
    pub fn begin_task(&mut self) {
        self.done = None;
    }

    /// A task is done; what it used can still be shown.
    pub fn end_task(&mut self, usage: Option<TaskUsage>) {
        self.done = usage;
    }

    /// The numbers of the last task that was done.
    pub fn last_task(&self) -> Option<TaskUsage> {
        self.done
    }
}
