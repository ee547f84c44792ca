//! Context window: the thread, the part of it that fits into a request, and the conditions for shortening it.

use super::super::context::{TokenCounts, estimate_tokens, tool_tokens};
use super::super::limits::{
    COMPACT_GROWTH_PERCENT, MAX_COMPACT_PERCENT, MAX_PROMPT_PERCENT, MAX_SUMMARY_TOKENS, MIN_COMPACT_TOKENS, RECENT_PERCENT,
    RESERVED_PERCENT,
};
use super::super::thread::Thread;
use super::context_breakdown::shares;
use super::rewind::ThreadChange;
use super::turn_context::TurnContext;
use crate::ports::{Durability, Record};
use crate::protocol::{
    ContextUse, EventKind, Failure, FailureKind, Message, MessageId, ModelFacts, Role, TaskId, Usage, format_count,
};

/// The session's thread, with its measured or estimated size.
#[derive(Debug, Default)]
pub(super) struct ContextWindow {
    thread: Thread,
    counting: TokenCounts,
    /// Input size of a request, in tokens, below which no automatic compaction starts.
    quiet_until: u64,
    /// Whether the provider has already rejected this step's request as too long.
    too_long: bool,
}

/// Input to the context window.
#[derive(Debug)]
pub(super) enum ContextInput<'a> {
    /// A message must be added to the thread.
    Added(Message),
    /// A summary replaces the messages up to `until`, except for the `verbatim` messages.
    Summarized {
        until: &'a MessageId,
        verbatim: &'a [MessageId],
        message: Message,
    },
    /// The journal contains an undone compaction.
    SummaryRemoved,
    /// The user undid the last compaction.
    UndoRequested,
    Rewound(ThreadChange),
    /// The conversation is too long, and no summary is available.
    HalfDropped,
    /// The user approved a plan that will run in a clean context.
    EarlierDropped,
    /// The journal contains a cut to this number of tokens.
    CutRestored(u64),
    /// The journal contains a response with this usage.
    ResponseRestored(Usage),
    /// The system prompt or the tools may have changed.
    ToolsChanged,
    /// The thread must fit into a request.
    RequestDue,
    RequestSent,
    /// A response with this usage was received.
    Responded(Usage),
    /// The request was not too long, because its response was received or another step begins.
    RequestFitted,
    /// The provider rejected the request as too long.
    RequestTooLong,
    /// An automatic compaction failed or was stopped.
    AutomaticPaused,
    /// The model or its known context window changed.
    ModelChanged,
}

/// Output of the context window.
#[derive(Debug)]
pub(super) enum ContextOutput {
    /// The thread cannot be shortened enough.
    Failed(Failure),
    /// Messages were dropped.
    Shortened,
    TooLong(OverlongRequest),
}

/// Request that the provider rejected as too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverlongRequest {
    /// The request was sent to a model that has since been replaced.
    OtherModel,
    First,
    /// The request had already been shortened.
    Repeated,
}

/// Input handling.
impl ContextWindow {
    /// Handles an input.
    pub(crate) fn handle(&mut self, input: ContextInput<'_>, cx: &mut TurnContext) -> Option<ContextOutput> {
        match input {
            ContextInput::Added(message) => self.thread.push(message),
            ContextInput::Summarized { until, verbatim, message } => self.summarize(until, verbatim, message, cx),
            ContextInput::SummaryRemoved => self.undo_summary(cx),
            ContextInput::UndoRequested => self.undo_compaction(cx),
            ContextInput::Rewound(change) => self.rewind(change),
            ContextInput::HalfDropped => return self.drop_half(cx).then_some(ContextOutput::Shortened),
            ContextInput::EarlierDropped => self.drop_earlier(cx),
            ContextInput::CutRestored(tokens) => self.restore_cut(tokens),
            ContextInput::ResponseRestored(usage) => self.restore_response(usage, cx),
            ContextInput::ToolsChanged => self.count_fixed(cx),
            ContextInput::RequestDue => return self.fit(cx).err().map(ContextOutput::Failed),
            ContextInput::RequestSent => self.begin_request(cx),
            ContextInput::Responded(usage) => self.learn(usage),
            ContextInput::RequestFitted => self.too_long = false,
            ContextInput::RequestTooLong => return Some(ContextOutput::TooLong(self.on_overlong_request(cx))),
            ContextInput::AutomaticPaused => self.pause_auto_compaction(cx),
            // A compaction may now be possible.
            ContextInput::ModelChanged => self.quiet_until = 0,
        }
        None
    }
}

/// Thread changes.
impl ContextWindow {
    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    pub(crate) fn thread_mut(&mut self) -> &mut Thread {
        &mut self.thread
    }

    /// Replaces messages with a summary. Also used to restore a journal.
    fn summarize(&mut self, until: &MessageId, verbatim: &[MessageId], message: Message, cx: &TurnContext) {
        if self.thread.compact(until, verbatim, message) {
            self.counting.counted = 0;
            self.pause_auto_compaction(cx);
        }
    }

    /// Removes the last summary. Also used to restore a journal.
    fn undo_summary(&mut self, cx: &TurnContext) {
        if self.thread.undo() {
            self.counting.counted = 0;
            // An undo must not be followed immediately by an automatic compaction.
            self.pause_auto_compaction(cx);
        }
    }

    /// Restores the messages that the last summary replaced, at the user's request.
    fn undo_compaction(&mut self, cx: &mut TurnContext) {
        if !self.thread.has_summary() {
            return cx.out.notice("nothing to undo: this conversation has not been compacted");
        }
        cx.out.record(Record::CompactionUndone);
        cx.out.commit(Durability::Power);
        self.undo_summary(cx);
        let tokens = self.next_input_tokens(cx);
        cx.out.event(EventKind::CompactionUndone { tokens });
        let limit = self.input_limit(cx);
        if tokens > limit {
            cx.out.notice(format!(
                "the messages are restored: about {}, of which {limit} fit; the next request drops the oldest",
                format_count(tokens, "token", "tokens")
            ));
        }
    }

    /// Applies a rewind's change to the thread. The provider's token count no longer applies afterwards.
    fn rewind(&mut self, change: ThreadChange) {
        match change {
            ThreadChange::CutFrom(from) => {
                self.thread.truncate_from(&from);
            }
            ThreadChange::Replaced(thread) => self.thread = thread,
        }
        self.counting.counted = 0;
    }

    /// Drops the oldest messages until the rest fits. Returns an error if the remaining messages do not fit either.
    fn fit(&mut self, cx: &mut TurnContext) -> Result<(), Failure> {
        let budget = self.message_budget(cx);
        self.drop_to(budget, cx);
        let counting = &self.counting;
        let (window, name) = (cx.window(), cx.model_name());
        let hopeless = |tokens| counting.to_model_tokens(name, tokens) * 100 > window * MAX_PROMPT_PERCENT;
        // If all messages together are not too long, no single message is.
        if !hopeless(self.thread.tokens()) {
            return Ok(());
        }
        let own = self.thread.messages().iter().rev().find(|message| message.role == Role::User);
        let own = own.map_or(0, |message| message.token_count);
        if hopeless(own) {
            let own = counting.to_model_tokens(name, own);
            let is_model = window == cx.options.model.context_window;
            let (limit, larger) = if is_model {
                (format!("`{name}` accepts"), "choose a model with a larger context window")
            } else {
                ("the policy allows (`max_input_tokens`)".to_owned(), "raise that limit")
            };
            return Err(Failure::new(
                FailureKind::ContextTooLong,
                format!("this prompt has about {own} tokens, but {limit} at most {window}; nothing was sent"),
                format!("put the text in a file and name that file, so that the model can read it in parts, or {larger}"),
            ));
        }
        Ok(())
    }

    /// Drops the older half of the thread after the provider rejected it as too long and no summary is available. The
    /// cut is recorded so that other processes make the same cut.
    fn drop_half(&mut self, cx: &mut TurnContext) -> bool {
        let tokens = self.thread.tokens() / 2;
        let Some(removed) = self.drop_to(tokens, cx) else { return false };
        cx.out.record(Record::Truncated { tokens, removed });
        cx.out.commit(Durability::Process);
        true
    }

    /// Drops all messages before the latest response except for a summary and the prompt. The cut is recorded as in
    /// `drop_half`.
    fn drop_earlier(&mut self, cx: &mut TurnContext) {
        if let Some(removed) = self.drop_to(0, cx) {
            cx.out.record(Record::Truncated { tokens: 0, removed });
            cx.out.commit(Durability::Process);
        }
    }

    fn drop_to(&mut self, budget: u64, cx: &mut TurnContext) -> Option<u64> {
        let removed = self.thread.fit(budget)?;
        self.counting.counted = 0;
        cx.out.event(EventKind::ContextTruncated { removed });
        Some(removed)
    }

    /// Applies a cut from the journal to the thread.
    fn restore_cut(&mut self, tokens: u64) {
        if self.thread.fit(tokens).is_some() {
            self.counting.counted = 0;
        }
    }

    /// Restores the thread's size as of a response in the journal.
    fn restore_response(&mut self, usage: Usage, cx: &TurnContext) {
        let budget = self.message_budget(cx);
        self.thread.fit(budget);
        self.begin_request(cx);
        self.learn(usage);
    }
}

/// Sizes and limits.
impl ContextWindow {
    /// Converts an estimated token count to the current model's tokens.
    pub(crate) fn to_model_tokens(&self, estimated: u64, cx: &TurnContext) -> u64 {
        self.counting.to_model_tokens(cx.model_name(), estimated)
    }

    /// Returns the estimated number of tokens in the system prompt and the tools.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        self.counting.fixed
    }

    /// Returns the number of tokens reserved for the response.
    pub(crate) fn reserved_tokens(cx: &TurnContext) -> u64 {
        cx.response_limit().min(cx.options.model.context_window * RESERVED_PERCENT / 100)
    }

    /// Returns the output limit for the next request, in tokens. The limit is needed because servers reject requests
    /// that exceed their context window.
    pub(crate) fn output_limit(&self, cx: &TurnContext) -> u64 {
        let left = cx.options.model.context_window.saturating_sub(self.next_input_tokens(cx));
        cx.response_limit().min(left.max(Self::reserved_tokens(cx)))
    }

    /// Returns the maximum number of input tokens in a request.
    pub(crate) fn input_limit(&self, cx: &TurnContext) -> u64 {
        let beside_the_answer = cx.options.model.context_window - Self::reserved_tokens(cx);
        cx.window().min(beside_the_answer).min(self.counting.input_limit(cx.model_name()))
    }

    /// Returns the input size of the next request in the current model's tokens, including the thread, the system
    /// prompt and the tools.
    pub(crate) fn next_input_tokens(&self, cx: &TurnContext) -> u64 {
        self.to_model_tokens(self.counting.fixed + self.thread.tokens(), cx)
    }

    /// Returns the number of input tokens of a summary request to a different model, and the request's output limit.
    /// Returns `None` if the request does not fit the model. `messages` is the estimated number of tokens in the
    /// request's messages.
    pub(crate) fn summary_input(&self, model: &ModelFacts, messages: u64, cx: &TurnContext) -> Option<(u64, u64)> {
        let estimated = self.counting.fixed + messages;
        // Little is known about how the other model counts tokens, so use the larger estimate.
        let input = self.counting.to_model_tokens(&model.name, estimated).max(self.to_model_tokens(estimated, cx));
        let own = model.max_output_tokens.unwrap_or(u64::MAX).min(model.context_window * RESERVED_PERCENT / 100);
        let of_policy = cx.policy.llm().filter_map(|limits| limits.max_output_tokens);
        let output = of_policy.fold(own.min(MAX_SUMMARY_TOKENS), u64::min);
        let of_policy = cx.policy.llm().filter_map(|limits| limits.max_input_tokens);
        let most = of_policy.fold(model.context_window - output, u64::min).min(self.counting.input_limit(&model.name));
        (input <= most).then_some((input, output))
    }

    /// Returns the estimated number of tokens available for messages. Messages always get a minimum share, because
    /// only the provider can determine the exact size.
    pub(crate) fn message_budget(&self, cx: &TurnContext) -> u64 {
        let all = self.counting.to_estimate(cx.model_name(), self.input_limit(cx));
        all.saturating_sub(self.counting.fixed).max(all * RESERVED_PERCENT / 100)
    }

    /// Estimates the size of the system prompt and the tools. Called again when the tools change.
    fn count_fixed(&mut self, cx: &TurnContext) {
        self.counting.fixed = estimate_tokens(cx.options.system.len()) + tool_tokens(&cx.options.tools.definitions);
    }

    /// Returns the reason why no request can be sent: the policy's token limit is smaller than the system prompt and
    /// the tools. Returns `None` if that is not the case.
    pub(crate) fn window_failure(&self, cx: &TurnContext) -> Option<Failure> {
        let most = cx.policy.most_input_tokens()?;
        let needed = self.to_model_tokens(self.counting.fixed, cx);
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

    /// Stores the estimated size of the request for comparison with the provider's count.
    fn begin_request(&mut self, cx: &TurnContext) {
        self.counting.asked = self.counting.fixed + self.thread.tokens();
        self.counting.model.clone_from(&cx.options.model.name);
    }

    /// Updates the estimates with the provider's count for the request.
    fn learn(&mut self, usage: Usage) {
        // A different model may have been chosen since the request was sent.
        let name = self.counting.model.clone();
        self.counting.learn(&name, usage.input_tokens);
    }

    /// Handles the provider's rejection of the request as too long.
    fn on_overlong_request(&mut self, cx: &TurnContext) -> OverlongRequest {
        let name = self.counting.model.clone();
        let tokens = self.counting.to_model_tokens(&name, self.counting.asked);
        self.counting.on_too_long(&name, tokens);
        if name != cx.model_name() {
            return OverlongRequest::OtherModel;
        }
        if std::mem::replace(&mut self.too_long, true) { OverlongRequest::Repeated } else { OverlongRequest::First }
    }

    /// Adds a hint to the failure of a request that cannot be shortened.
    pub(crate) fn with_hint(&self, failure: Failure, cx: &TurnContext) -> Failure {
        let fixed = self.to_model_tokens(self.counting.fixed, cx);
        let hint = if fixed * 2 > self.input_limit(cx) {
            format!(
                "the instructions and tools alone have about {fixed} tokens; choose a model with a larger context window, or offer fewer \
                 tools with `[tools] enabled`"
            )
        } else {
            "ask for less at a time, start a new session, or choose a model with a larger context window".to_owned()
        };
        Failure { hint, ..failure }
    }

    /// Returns the number of input tokens at which an automatic compaction starts, or `None` if automatic compactions
    /// are disabled.
    pub(crate) fn threshold(&self, cx: &TurnContext) -> Option<u64> {
        let percent = cx.options.compact_at_percent.filter(|percent| *percent > 0)?;
        Some((cx.window() * percent / 100).min(self.input_limit(cx) * MAX_COMPACT_PERCENT / 100))
    }

    /// Returns whether an automatic compaction is due.
    pub(crate) fn is_full(&self, cx: &TurnContext) -> bool {
        let tokens = self.next_input_tokens(cx);
        self.threshold(cx).is_some_and(|threshold| tokens >= threshold.max(self.quiet_until))
    }

    /// Prevents automatic compactions until the thread has grown.
    fn pause_auto_compaction(&mut self, cx: &TurnContext) {
        self.quiet_until = self.next_input_tokens(cx) + cx.window() * COMPACT_GROWTH_PERCENT / 100;
    }

    /// Returns how many of the current model's tokens a compaction would free.
    fn compactable(&self, task: Option<&TaskId>, cx: &TurnContext) -> u64 {
        let keep = (self.message_budget(cx).min(self.thread.tokens())) * RECENT_PERCENT / 100;
        let cut = self.thread.plan_compaction(keep, task).filter(|cut| cut.freed >= MIN_COMPACT_TOKENS);
        cut.map_or(0, |cut| self.to_model_tokens(cut.freed, cx))
    }

    /// Returns the breakdown of the context window for the user. `task` is the task that is running or can be
    /// continued, if any.
    pub(crate) fn breakdown(&self, task: Option<&TaskId>, cx: &TurnContext) -> ContextUse {
        let shares = shares(&self.thread, &self.counting, &cx.options);
        let used: u64 = shares.iter().map(|share| share.tokens).sum();
        let window = cx.window();
        ContextUse {
            model: cx.model_name().to_owned(),
            window,
            reserved: Self::reserved_tokens(cx),
            shares,
            counted: self.counting.counted.min(used),
            compactable: self.compactable(task, cx),
            compacts_at_percent: self.threshold(cx).map(|threshold| threshold * 100 / window.max(1)),
        }
    }
}
