//! The window in numbers: what fills it, what it holds, and when it is full.

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

    /// All the model takes, or the policy lets it be given.
    pub(super) fn window(&self) -> u64 {
        self.policy.llm().filter_map(|limits| limits.max_input_tokens).fold(self.options.model.context_window, u64::min)
    }

    /// Kept free for the answer.
    pub(super) fn reserved(&self) -> u64 {
        self.answer_limit().min(self.options.model.context_window * RESERVED_PERCENT / 100)
    }

    pub(super) fn answer_limit(&self) -> u64 {
        self.policy.llm().filter_map(|limits| limits.max_output_tokens).fold(self.options.max_output_tokens, u64::min)
    }

    /// What an answer may have beside an input of so many tokens: a server that is asked for more than its window holds refuses.
    pub(in crate::agent::turn) fn output_limit(&self) -> u64 {
        let left = self.options.model.context_window.saturating_sub(self.next_input_tokens());
        self.answer_limit().min(left.max(self.reserved()))
    }

    /// The input that a request may have.
    pub(super) fn input_limit(&self) -> u64 {
        let beside_the_answer = self.options.model.context_window - self.reserved();
        self.window().min(beside_the_answer).min(self.room.counting.most(self.model_name()))
    }

    /// What the next request has, as far as is known: the thread, the system prompt and the tools, as this model counts them.
    pub(in crate::agent::turn) fn next_input_tokens(&self) -> u64 {
        let counting = &self.room.counting;
        counting.real(self.model_name(), counting.fixed + self.thread.tokens())
    }

    /// Estimated tokens that the messages of a request may have. Where the rest leaves nothing, they get a share all the same: it is
    /// the provider who knows.
    pub(super) fn message_budget(&self) -> u64 {
        let counting = &self.room.counting;
        let limit = self.input_limit();
        let all = counting.estimated(self.model_name(), limit);
        all.saturating_sub(counting.fixed).max(all * RESERVED_PERCENT / 100)
    }

    /// The tools have changed, or are known for the first time.
    pub(in crate::agent::turn) fn count_what_is_fixed(&mut self) {
        let system = context::tokens_of(self.options.system.len());
        self.room.counting.fixed = system + context::tool_tokens(&self.options.tools);
    }

    /// Why no request can be sent: the policy allows it fewer tokens than the system prompt and the tools have.
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

    /// The request's own size, for what its provider says of it.
    pub(in crate::agent::turn) fn note_request(&mut self) {
        self.room.counting.asked = self.room.counting.fixed + self.thread.tokens();
        self.room.counting.model.clone_from(&self.options.model.name);
    }

    /// The provider counted the request.
    pub(in crate::agent::turn) fn note_counted(&mut self, usage: Usage) {
        // Another may have been chosen since it was asked.
        let name = self.room.counting.model.clone();
        self.room.counting.learn(&name, usage.input_tokens);
    }

    /// Tokens of input at which a summary is made without being asked for.
    pub(super) fn threshold(&self) -> Option<u64> {
        let percent = self.options.compact_at_percent.filter(|percent| *percent > 0)?;
        Some((self.window() * percent / 100).min(self.input_limit() * COMPACT_LATEST_PERCENT / 100))
    }

    /// Another model is asked from now on, or more is known of this one: what came to nothing with the window before may be needed
    /// in this one.
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

    /// Leaves the oldest messages out where all of them do not fit. `Err`: what is left cannot fit either.
    pub(in crate::agent::turn) fn fit_the_window(&mut self) -> Result<(), Failure> {
        let budget = self.message_budget();
        self.drop_to(budget);
        let counting = &self.room.counting;
        let (window, name) = (self.window(), self.model_name());
        let hopeless = |tokens| counting.real(name, tokens) * 100 > window * HOPELESS_PERCENT;
        // One message is not too much where all of them are not; it may stand thousands of messages back.
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

    /// The provider found it too long, and there is no summary: the older half is left out, also in what another process sends.
    pub(super) fn drop_half(&mut self) -> bool {
        let tokens = self.thread.tokens() / 2;
        let Some(removed) = self.drop_to(tokens) else { return false };
        self.note(Record::Truncated { tokens, removed });
        self.commit(Durability::Process);
        true
    }

    /// Brings the thread of a journal to what it was after that.
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

    /// Brings the thread of a journal to what it was when this answer was given.
    pub(in crate::agent::turn) fn refit(&mut self, usage: Usage) {
        let budget = self.message_budget();
        self.thread.fit(budget);
        self.note_request();
        self.note_counted(usage);
    }

    /// How much a summary would free now, as the model counts.
    pub(super) fn compactable(&self) -> u64 {
        let keep = (self.message_budget().min(self.thread.tokens())) * RECENT_PERCENT / 100;
        // Also of a task that ended before it was done: it may be taken up again.
        let task = self.task.as_ref().or(self.ended.as_ref()).map(|task| task.id.clone());
        let cut = self.thread.cut(keep, task.as_ref()).filter(|cut| cut.freed >= COMPACT_LEAST_TOKENS);
        cut.map_or(0, |cut| self.room.counting.real(self.model_name(), cut.freed))
    }
}
