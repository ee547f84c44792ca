//! What was used up: each request at the price of the model that answers, and what the next one may use.
//!
//! The estimate of the next request is what is to be sent, corrected by what the provider counted of the request before it, and a
//! modest answer. What the provider kept of that request counts at its lower price as long as it surely still has it, all else
//! at the full one.

use super::super::context::estimate;
use super::super::limits::{BYTES_PER_TOKEN, CACHE_SECONDS, OUTPUT_GUESS_TOKENS};
use super::answer::CompletedRequest;
use super::ask::waited;
use super::{Machine, Moment, Phase};
use crate::ports::{Delta, ModelError, Record};
use crate::protocol::{BudgetLimit, BudgetScope, BudgetUnit, ModelFacts, Part, StopReason, Usage};
use crate::session::{Spent, Totals};
use jiff::Timestamp;

/// What is known of the money and tokens of a session besides their sums.
#[derive(Debug, Default)]
pub(super) struct Spending {
    /// What the person set in this session, the last of each kind.
    pub said: Vec<BudgetLimit>,
    /// Those that the person was warned of.
    pub warned: Vec<(BudgetScope, BudgetUnit)>,
    /// The task waits because a budget is used up.
    pub paused: bool,
    asked: Option<Asked>,
    last: Option<Answered>,
    /// What the last task used that was done.
    pub done: Option<Done>,
}

/// A task that was done, in numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub totals: Totals,
    pub step_count: u32,
    pub max_steps: u32,
}

/// The request that is under way.
#[derive(Debug)]
struct Asked {
    model: ModelFacts,
    /// As estimated, and corrected by what the provider counted before.
    tokens: u64,
    /// What of its answer came until now.
    heard_bytes: usize,
}

/// The last request that was answered and counted.
#[derive(Debug)]
struct Answered {
    model: String,
    usage: Usage,
    at: Timestamp,
}

impl Machine {
    /// A request is sent now; its price is that of the model it goes to, whatever is chosen while it answers.
    pub(super) fn asks(&mut self) {
        let tokens = self.next_input_tokens();
        self.note_request();
        self.asks_for(tokens);
    }

    /// The same for a request of so many tokens that is no part of the thread.
    pub(super) fn asks_for(&mut self, tokens: u64) {
        self.spending.asked = Some(Asked { model: self.options.model.clone(), tokens, heard_bytes: 0 });
    }

    /// The model that the request under way went to.
    pub(super) fn asked_model(&self) -> &str {
        let asked = self.spending.asked.as_ref();
        asked.map_or(&self.options.model.name, |asked| &asked.model.name)
    }

    /// Something of the answer came.
    pub(super) fn hear(&mut self, delta: &Delta) {
        let bytes = match delta {
            Delta::Text(text) | Delta::Reasoning(text) => text.len(),
            // All of its arguments until now, not those that are new: at least something came.
            Delta::ToolCallProgress { .. } => 1,
            Delta::Completed(_) => 0,
        };
        if let Some(asked) = &mut self.spending.asked {
            asked.heard_bytes += bytes;
        }
    }

    /// Counts what a request used, at the price of the model that was asked; what it cost, where the price is known.
    pub(super) fn spend(&mut self, usage: Usage) -> Option<f64> {
        let asked = self.spending.asked.take().map(|asked| asked.model);
        let cost_usd = asked.as_ref().unwrap_or(&self.options.model).cost_usd(&usage);
        self.count(usage, cost_usd);
        cost_usd
    }

    /// Counts an answer; what its provider did not count is estimated, and said to be.
    pub(super) fn spend_on_answer(&mut self, usage: Usage, content: &[Part], at: Moment) -> Spent {
        let asked = self.spending.asked.take();
        let mut counted = usage;
        if usage.input_tokens == 0 {
            counted.input_tokens = asked.as_ref().map_or(0, |asked| asked.tokens);
        }
        if usage.output_tokens == 0 && !content.is_empty() {
            counted.output_tokens = estimate(content);
        }
        let estimated = counted != usage;
        if let Some(asked) = &asked
            && usage.input_tokens > 0
        {
            let model = asked.model.name.clone();
            self.spending.last = Some(Answered { model, usage, at: at.now });
        }
        self.spending.asked = asked;
        let cost_usd = self.spend(counted);
        Spent { usage: counted, cost_usd, estimated }
    }

    /// Counts a request that gave no answer. Where its provider said nothing of what it used, what came of it is estimated; of a
    /// request to which nothing came back nothing is counted.
    pub(super) fn waste(&mut self, error: Option<&ModelError>) -> Option<Spent> {
        let told = error.and_then(|error| error.usage).filter(|usage| *usage != Usage::default());
        let guessed = self.spending.asked.as_ref().filter(|asked| asked.heard_bytes > 0).map(|asked| Usage {
            input_tokens: asked.tokens,
            output_tokens: (asked.heard_bytes / BYTES_PER_TOKEN) as u64,
            ..Usage::default()
        });
        let usage = told.or(guessed)?;
        let cost_usd = self.spend(usage);
        let estimated = told.is_none();
        self.note(Record::Wasted { usage, cost_usd, estimated });
        Some(Spent { usage, cost_usd, estimated })
    }

    /// Says what a request used that is not repeated; of one that is, its repetition says it.
    pub(super) fn tell_of_waste(
        &mut self,
        wasted: Option<Spent>,
        model: String,
        stop_reason: StopReason,
        since: Timestamp,
        at: Moment,
    ) {
        let Some(spent) = wasted else { return };
        self.tell_of_request(CompletedRequest { spent, stop_reason, latency_ms: waited(since, at), model });
    }

    /// Counts the request under way, if there is one, before it is stopped.
    pub(super) fn waste_what_streams(&mut self, at: Moment) {
        let of_task = self.task.as_ref().and_then(|task| match &task.phase {
            Phase::Requesting(stream) => Some(stream.since),
            Phase::Retrying { .. } | Phase::Compacting | Phase::Working(_) | Phase::Paused => None,
        });
        if let Some(since) = self.summary_asked_at().or(of_task) {
            let model = self.asked_model().to_owned();
            let wasted = self.waste(None);
            self.tell_of_waste(wasted, model, StopReason::Cancelled, since, at);
        }
    }

    /// The process before ended in the middle of an answer: it was paid for all the same, and nobody has counted it.
    pub(super) fn count_what_was_lost(&mut self, bytes: usize) {
        if bytes == 0 || self.task.is_none() {
            return;
        }
        let (input_tokens, output_tokens) = (self.next_input_tokens(), (bytes / BYTES_PER_TOKEN) as u64);
        let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
        let cost_usd = self.spend(usage);
        self.note(Record::Wasted { usage, cost_usd, estimated: true });
        let tokens = input_tokens + output_tokens;
        self.notice(format!("aye ended in the middle of an answer, which is lost; it is counted with about {tokens} tokens"));
    }

    /// Adds to the sums, also from the journal.
    pub(super) fn count(&mut self, usage: Usage, cost_usd: Option<f64>) {
        let spent = Spent { usage, cost_usd, estimated: false };
        self.totals.add(spent);
        if let Some(task) = &mut self.task {
            task.totals.add(spent);
        }
    }

    /// A task begins: what is said of one begins anew.
    pub(super) fn count_anew(&mut self) {
        self.spending.done = None;
        self.spending.warned.retain(|(scope, _)| *scope != BudgetScope::Task);
    }

    /// The task is done; what it used can still be asked for.
    pub(super) fn note_done(&mut self) {
        self.spending.done = self.last_task();
    }

    /// The numbers of the task that runs, or of the last one.
    pub(super) fn last_task(&self) -> Option<Done> {
        let of = |task: &super::Task| Done { totals: task.totals, step_count: task.step_count, max_steps: task.max_steps };
        self.task.as_ref().or(self.ended.as_ref()).map(of).or(self.spending.done)
    }

    /// What the session cost; nothing where a part of it is not known.
    pub(super) fn session_cost(&self) -> Option<f64> {
        self.totals.whole_cost_usd()
    }

    pub(super) fn task_cost(&self) -> Option<f64> {
        self.task.as_ref()?.totals.whole_cost_usd()
    }

    /// What the next request may use. `at`: what a provider keeps of the last request it keeps for some minutes.
    pub(super) fn next_request(&self, at: Moment) -> Usage {
        let input_tokens = self.next_input_tokens().min(self.options.model.context_window);
        let output_tokens = self.options.max_output_tokens.min(OUTPUT_GUESS_TOKENS);
        let mut next = Usage { input_tokens, output_tokens, ..Usage::default() };
        let same = |last: &&Answered| last.model == self.options.model.name;
        if let Some(Answered { usage, at: then, .. }) = self.spending.last.as_ref().filter(same) {
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
}
