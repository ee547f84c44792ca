//! Context window calculations: usage, limits, and thresholds.

use super::super::super::context;
use super::super::super::limits::{
    COMPACT_GROWTH_PERCENT, COMPACT_LATEST_PERCENT, COMPACT_LEAST_TOKENS, HOPELESS_PERCENT, RECENT_PERCENT, RESERVED_PERCENT,
};
use super::super::TurnMachine;
use crate::ports::{Durability, Record};
use crate::protocol::{EventKind, Failure, FailureKind, Role, Usage};

impl TurnMachine {
    pub(super) fn model_name(&self) -> &str {
        &self.options.model.name
    }

    /// Returns the context window of the model, or the smaller limit of the policy.
    pub(super) fn window(&self) -> u64 {
        self.policy.llm().filter_map(|limits| limits.max_input_tokens).fold(self.options.model.context_window, u64::min)
    }

    /// Returns the tokens reserved for the response.
    pub(super) fn reserved(&self) -> u64 {
        self.answer_limit().min(self.options.model.context_window * RESERVED_PERCENT / 100)
    }

    pub(super) fn answer_limit(&self) -> u64 {
        self.policy.llm().filter_map(|limits| limits.max_output_tokens).fold(self.options.max_output_tokens, u64::min)
    }

    /// Returns the output limit beside an input of this size. Servers refuse a request that asks for more than their window.
    pub(in crate::agent::turn) fn output_limit(&self) -> u64 {
        let left = self.options.model.context_window.saturating_sub(self.next_input_tokens());
        self.answer_limit().min(left.max(self.reserved()))
    }

    /// Returns the maximum input of a request.
    pub(super) fn input_limit(&self) -> u64 {
        let beside_the_answer = self.options.model.context_window - self.reserved();
        self.window().min(beside_the_answer).min(self.room.counting.most(self.model_name()))
    }

    /// Returns the known tokens of the next request as this model counts them: thread, system prompt and tools.
    pub(in crate::agent::turn) fn next_input_tokens(&self) -> u64 {
        let counting = &self.room.counting;
        counting.real(self.model_name(), counting.fixed + self.thread.tokens())
    }

    /// Returns the estimated tokens available for messages. If the rest leaves none, they get a share anyway, because only the provider
    /// knows the exact size.
    pub(super) fn message_budget(&self) -> u64 {
        let counting = &self.room.counting;
        let limit = self.input_limit();
        let all = counting.estimated(self.model_name(), limit);
        all.saturating_sub(counting.fixed).max(all * RESERVED_PERCENT / 100)
    }

    /// Counts the system prompt and the tools again after the tools changed.
    pub(in crate::agent::turn) fn count_what_is_fixed(&mut self) {
        let system = context::tokens_of(self.options.system.len());
        self.room.counting.fixed = system + context::tool_tokens(&self.options.tools);
    }

    /// Returns why no request can be sent, if the policy allows fewer tokens than the system prompt and the tools have.
    pub(in crate::agent::turn) fn holds_no_request(&self) -> Option<Failure> {
        let most = self.policy.most_input_tokens()?;
        let needed = self.room.counting.real(self.model_name(), self.room.counting.fixed);
        if most.limit >= needed as f64 {
            return None;
        }
        let (allowed, key, place) = (most.limit, most.key, most.place);
        Some(Failure::new(
            FailureKind::ContextTooLong,
            format!(
                "the system prompt and the tools alone have about {needed} tokens, but the policy allows {allowed} per request \
                 (`{key}`); nothing was sent"
            ),
            format!("raise `{key}` in {place} above {needed}, or offer fewer tools with `[tools] enabled`"),
        ))
    }

    /// Notes the size of the request, for comparison with the provider's count.
    pub(in crate::agent::turn) fn note_request(&mut self) {
        self.room.counting.asked = self.room.counting.fixed + self.thread.tokens();
        self.room.counting.model.clone_from(&self.options.model.name);
    }

    /// Learns from the provider's count of the request.
    pub(in crate::agent::turn) fn note_counted(&mut self, usage: Usage) {
        // Another model may have been chosen since the request was sent.
        let name = self.room.counting.model.clone();
        self.room.counting.learn(&name, usage.input_tokens);
    }

    /// Returns the input tokens at which an automatic compaction starts.
    pub(super) fn threshold(&self) -> Option<u64> {
        let percent = self.options.compact_at_percent.filter(|percent| *percent > 0)?;
        Some((self.window() * percent / 100).min(self.input_limit() * COMPACT_LATEST_PERCENT / 100))
    }

    /// Resets what failed before when the model or its known window changes, because it may be needed now.
    pub(in crate::agent::turn) fn another_window(&mut self) {
        self.room.quiet_until = 0;
        let budget = self.message_budget();
        if let Some(work) = &mut self.room.work {
            work.budget = work.budget.min(budget);
        }
    }

    pub(super) fn be_quiet(&mut self) {
        self.room.quiet_until = self.next_input_tokens() + self.window() * COMPACT_GROWTH_PERCENT / 100;
    }

    /// Leaves out the oldest messages that do not fit. `Err`: the rest cannot fit either.
    pub(in crate::agent::turn) fn fit_the_window(&mut self) -> Result<(), Failure> {
        let budget = self.message_budget();
        self.drop_to(budget);
        let counting = &self.room.counting;
        let (window, name) = (self.window(), self.model_name());
        let hopeless = |tokens| counting.real(name, tokens) * 100 > window * HOPELESS_PERCENT;
        // A single message is not too long if all of them together are not.
        if !hopeless(self.thread.tokens()) {
            return Ok(());
        }
        let own = self.thread.messages().iter().rev().find(|message| message.role == Role::User);
        let own = own.map_or(0, |message| message.token_count);
        if hopeless(own) {
            let own = counting.real(name, own);
            return Err(Failure::new(
                FailureKind::ContextTooLong,
                format!("this prompt has about {own} tokens, but `{name}` accepts at most {window}; nothing was sent"),
                "put the text into a file and name that file, so that it is read in parts, or choose a model with a larger context window",
            ));
        }
        Ok(())
    }

    /// Leaves out the older half, because the provider found the thread too long and there is no summary. Recorded, so that other processes
    /// do the same.
    pub(super) fn drop_half(&mut self) -> bool {
        let tokens = self.thread.tokens() / 2;
        let Some(removed) = self.drop_to(tokens) else { return false };
        self.note(Record::Truncated { tokens, removed });
        self.commit(Durability::Process);
        true
    }

    /// Applies a recorded cut to the thread of a journal.
    pub(in crate::agent::turn) fn fit_again(&mut self, tokens: u64) {
        if self.thread.fit(tokens).is_some() {
            self.room.counting.counted = 0;
        }
    }

    pub(super) fn drop_to(&mut self, budget: u64) -> Option<u64> {
        let removed = self.thread.fit(budget)?;
        self.room.counting.counted = 0;
        self.emit(EventKind::ContextTruncated { removed });
        Some(removed)
    }

    /// Restores the thread of a journal to its state at this response.
    pub(in crate::agent::turn) fn refit(&mut self, usage: Usage) {
        let budget = self.message_budget();
        self.thread.fit(budget);
        self.note_request();
        self.note_counted(usage);
    }

    /// Returns the tokens that a compaction would free now, as the model counts them.
    pub(super) fn compactable(&self) -> u64 {
        let keep = (self.message_budget().min(self.thread.tokens())) * RECENT_PERCENT / 100;
        // A task that ended early counts too, because it may be continued.
        let task = self.task.as_ref().or(self.ended.as_ref()).map(|task| task.id.clone());
        let cut = self.thread.cut(keep, task.as_ref()).filter(|cut| cut.freed >= COMPACT_LEAST_TOKENS);
        cut.map_or(0, |cut| self.room.counting.real(self.model_name(), cut.freed))
    }
}
