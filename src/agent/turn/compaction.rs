//! Compaction: a summary replaces older messages, or the oldest messages are dropped.
//!
//! The summary request has the same system prompt, tools and messages as other requests. This allows the provider to
//! use its cache, and some providers refuse a thread with calls if no tools are offered. Tool calls in the response are
//! not run.

mod summary;

use super::super::context::estimate;
use super::super::limits::{
    MAX_SUMMARY_TOKENS, MIN_COMPACT_PERCENT, MIN_COMPACT_TOKENS, RECENT_PERCENT, SUMMARY_HALVINGS, SUMMARY_WORTH_PERCENT,
};
use super::super::thread::CompactionPoint;
use super::context_window::ContextWindow;
use super::io::InputTime;
use super::turn_context::TurnContext;
use crate::ports::{Durability, ModelRequest, Record};
use crate::protocol::{
    Compaction, CompactionTrigger, EventKind, Message, MessageId, ModelFacts, NOT_COMPACTED, Part, Role, StopReason, TaskId,
};
use crate::session::Expense;
use jiff::Timestamp;
use std::sync::Arc;

/// Requested compaction, and the running one.
#[derive(Debug, Default)]
pub(super) struct Compactor {
    /// Compaction that the user requested during a step; it runs before the next request.
    wanted: Option<SummaryRequest>,
    work: Option<RunningSummary>,
}

/// Requested compaction.
#[derive(Debug)]
pub(super) struct SummaryRequest {
    pub focus: Option<String>,
}

/// Compaction in progress.
#[derive(Debug)]
struct RunningSummary {
    trigger: CompactionTrigger,
    focus: Option<String>,
    cut: CompactionPoint,
    /// Estimated tokens available for the messages to summarize.
    budget: u64,
    halvings: u32,
    attempt: u32,
    since: Timestamp,
    /// Ticket of a retry, while the request waits for one.
    ticket: Option<u64>,
    /// Whether the request waits for a fallback model to be opened.
    waits_for_model: bool,
    /// Model that writes the summary, if it is not the model in use.
    model: Option<ModelFacts>,
    then: AfterSummary,
}

/// Action after a compaction, whether it succeeded or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterSummary {
    Nothing,
    /// Send the request for which space was needed.
    Request {
        attempt: u32,
    },
    /// Continue the paused task.
    Continue,
    /// Start the next queued message.
    NextTask,
}

/// Request for a summary.
pub(super) struct SummaryCall {
    pub request: ModelRequest,
    /// Model that receives the request, if it is not the model in use.
    pub model: Option<ModelFacts>,
    pub estimated_input_tokens: u64,
}

/// Result of a response to a summary request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummaryOutcome {
    /// The summary was added to the thread.
    Done,
    /// The messages to summarize do not fit the context window.
    TooLong,
    /// No summary was written, for this reason.
    Failed(&'static str),
}

impl SummaryOutcome {
    /// Returns why the summary failed.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Done => "",
            Self::TooLong => "the messages do not fit its context window",
            Self::Failed(why) => why,
        }
    }
}

/// Queries about the compaction.
impl Compactor {
    /// Returns whether a compaction is in progress.
    pub(crate) fn is_running(&self) -> bool {
        self.work.is_some()
    }

    /// Returns whether the task sends its request after the compaction in progress.
    pub(crate) fn precedes_request(&self) -> bool {
        self.work.as_ref().is_some_and(|work| matches!(work.then, AfterSummary::Request { .. }))
    }

    /// Returns when the summary was requested; `None` while the request waits for a retry.
    pub(crate) fn requested_at(&self) -> Option<Timestamp> {
        self.work.as_ref().filter(|work| work.ticket.is_none()).map(|work| work.since)
    }

    /// Returns the model that writes the summary, if it is not the model in use.
    pub(crate) fn model(&self) -> Option<&ModelFacts> {
        self.work.as_ref().and_then(|work| work.model.as_ref())
    }

    /// Returns whether the request for the summary waits for a fallback model.
    pub(crate) fn waits_for_model(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.waits_for_model)
    }

    /// Returns the estimated tokens of all messages to summarize, including the instructions for the summary.
    pub(crate) fn message_tokens(&self, window: &ContextWindow) -> u64 {
        let Some(work) = &self.work else { return 0 };
        let messages = window.thread().messages_before(work.cut.index, u64::MAX);
        let tokens: u64 = messages.iter().map(|message| message.token_count).sum();
        tokens + estimate(&[summary::question(work.focus.as_deref())])
    }

    /// Returns the ticket of the pending summary request.
    pub(crate) fn ticket(&self) -> Option<u64> {
        self.work.as_ref().and_then(|work| work.ticket)
    }
}

/// Beginning of a compaction, and its requests.
impl Compactor {
    /// Requests a compaction before the next request.
    pub(crate) fn request_later(&mut self, focus: Option<String>) {
        self.wanted = Some(SummaryRequest { focus });
    }

    pub(crate) fn take_request(&mut self) -> Option<SummaryRequest> {
        self.wanted.take()
    }

    /// Starts the next queued message after the compaction in progress.
    pub(crate) fn start_next_after(&mut self) {
        if let Some(work) = self.work.as_mut().filter(|work| work.then == AfterSummary::Nothing) {
            work.then = AfterSummary::NextTask;
        }
    }

    /// Continues a paused task after the compaction in progress. Returns whether a compaction is in progress.
    pub(crate) fn continue_after(&mut self, cx: &mut TurnContext) -> bool {
        let Some(work) = &mut self.work else { return false };
        if !matches!(work.then, AfterSummary::Request { .. }) {
            work.then = AfterSummary::Continue;
            cx.out.notice("the task continues as soon as the summary is ready");
        }
        true
    }

    /// Starts a compaction; its request follows. The error explains why a compaction would not help. `task`: the task
    /// that is running or can be continued.
    pub(crate) fn begin(
        &mut self,
        (trigger, focus, then): (CompactionTrigger, Option<String>, AfterSummary),
        task: Option<&TaskId>,
        window: &ContextWindow,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Result<(), String> {
        let (thread, budget) = (window.thread(), window.message_budget(cx));
        let recent = budget * RECENT_PERCENT / 100;
        // A requested compaction ignores the free space; after an overlong request, the real window size is unknown.
        let of_thread = thread.tokens() * RECENT_PERCENT / 100;
        let (keep, least) = match trigger {
            CompactionTrigger::Asked => (recent.min(of_thread), MIN_COMPACT_TOKENS),
            CompactionTrigger::Threshold => (recent, budget * MIN_COMPACT_PERCENT / 100),
            CompactionTrigger::TooLong => {
                (recent.min(of_thread), (thread.tokens() * MIN_COMPACT_PERCENT / 100).max(MIN_COMPACT_TOKENS))
            }
        };
        let nothing = || "nothing to compact: the conversation is short enough".to_owned();
        let cut = thread.plan_compaction(keep, task).filter(|cut| cut.freed >= least).ok_or_else(nothing)?;
        let question = estimate(&[summary::question(focus.as_deref())]);
        let budget = budget.saturating_sub(question);
        if thread.messages_before(cut.index, budget).is_empty() {
            return Err("nothing to compact: no message fits the context window".to_owned());
        }
        let messages = cut.summarized_count() as u64;
        let tokens = window.to_model_tokens(cut.freed, cx);
        cx.out.record(Record::CompactionStarted { trigger });
        cx.out.commit(Durability::Process);
        cx.out.event(EventKind::CompactionStarted { trigger, messages, tokens });
        let (halvings, attempt, since, ticket) = (0, 0, at.now, None);
        let (waits_for_model, model) = (false, None);
        self.work =
            Some(RunningSummary { trigger, focus, cut, budget, halvings, attempt, since, ticket, waits_for_model, model, then });
        Ok(())
    }

    /// Selects the model that writes the summary; `None` for the model in use. Attempts are counted from zero again.
    pub(crate) fn write_with(&mut self, model: Option<ModelFacts>) {
        if let Some(work) = &mut self.work {
            (work.model, work.attempt, work.halvings) = (model, 0, 0);
        }
    }

    /// Returns the request for the summary. A model other than the current one receives all messages.
    pub(crate) fn request(&mut self, window: &ContextWindow, cx: &TurnContext, at: InputTime) -> Option<SummaryCall> {
        let all = self.message_tokens(window);
        let work = self.work.as_mut()?;
        (work.since, work.ticket, work.waits_for_model) = (at.now, None, false);
        let other = work.model.as_ref().and_then(|model| window.summary_input(model, all, cx));
        let budget = if other.is_some() { u64::MAX } else { work.budget };
        let mut messages = window.thread().messages_before(work.cut.index, budget);
        let last = messages.last()?;
        let content = vec![summary::question(work.focus.as_deref())];
        let message_id = MessageId::new(format!("{}?{}", last.message_id, work.halvings));
        let token_count = estimate(&content);
        messages.push(Arc::new(Message { message_id, role: Role::User, token_count, content, ..last.as_ref().clone() }));
        let sent: u64 = messages.iter().map(|message| message.token_count).sum();
        let in_use = (window.to_model_tokens(window.fixed_tokens() + sent, cx), window.output_limit(cx).min(MAX_SUMMARY_TOKENS));
        let (estimated_input_tokens, max_output_tokens) = other.unwrap_or(in_use);
        let request = ModelRequest {
            system: cx.options.system.clone(),
            messages,
            tools: cx.options.tools.clone(),
            max_output_tokens,
            images: None,
            // The effort is chosen for the model in use.
            effort: cx.options.effort.filter(|_| other.is_none()),
        };
        Some(SummaryCall { request, model: work.model.clone().filter(|_| other.is_some()), estimated_input_tokens })
    }

    /// Limits the messages to summarize after the window changed.
    pub(crate) fn limit_budget(&mut self, budget: u64) {
        if let Some(work) = &mut self.work {
            work.budget = work.budget.min(budget);
        }
    }

    /// Increments the number of failed attempts, and returns it.
    pub(crate) fn count_attempt(&mut self) -> Option<u32> {
        let work = self.work.as_mut().filter(|work| work.ticket.is_none())?;
        work.attempt += 1;
        Some(work.attempt)
    }

    /// Waits for this timer before the request is retried.
    pub(crate) fn wait_for(&mut self, ticket: u64) {
        if let Some(work) = &mut self.work {
            work.ticket = Some(ticket);
        }
    }

    /// Waits for a fallback model before the request is retried.
    pub(crate) fn wait_for_model(&mut self, ticket: u64) {
        self.wait_for(ticket);
        if let Some(work) = &mut self.work {
            work.waits_for_model = true;
        }
    }

    /// Shortens a summary request that does not fit. Returns whether it can be retried.
    pub(crate) fn shorten(&mut self, window: &ContextWindow) -> bool {
        let Some(work) = &mut self.work else { return false };
        work.halvings += 1;
        let sent: u64 =
            window.thread().messages_before(work.cut.index, work.budget).iter().map(|message| message.token_count).sum();
        work.budget = sent.min(work.budget) / 2;
        work.halvings <= SUMMARY_HALVINGS && !window.thread().messages_before(work.cut.index, work.budget).is_empty()
    }
}

/// End of a compaction.
impl Compactor {
    /// Handles the response to the summary request.
    pub(crate) fn on_response(
        &mut self,
        (content, stop_reason): (&[Part], StopReason),
        spent: Expense,
        window: &mut ContextWindow,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> SummaryOutcome {
        let text = summary::plain_text(content);
        let outcome = match stop_reason {
            StopReason::ContextWindowExceeded => SummaryOutcome::TooLong,
            StopReason::Refusal | StopReason::ContentFilter => {
                SummaryOutcome::Failed("the provider's content filter stopped the summary")
            }
            StopReason::Error | StopReason::Cancelled => SummaryOutcome::Failed("the provider ended the summary with an error"),
            _ if text.is_empty() => SummaryOutcome::Failed("the model returned no summary"),
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::PauseTurn => self.apply(text, spent, window, cx, at),
        };
        if outcome != SummaryOutcome::Done {
            let Expense { usage, cost_usd, estimated } = spent;
            let model = self.model().map(|model| model.name.clone());
            cx.out.record(Record::Wasted { usage, cost_usd, estimated, model });
        }
        outcome
    }

    /// Replaces the older messages with the summary, unless that would not make the thread shorter.
    fn apply(
        &self,
        text: String,
        Expense { usage, cost_usd, estimated }: Expense,
        window: &mut ContextWindow,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> SummaryOutcome {
        let missing = SummaryOutcome::Failed("there is nothing to summarize");
        let Some(work) = &self.work else { return missing };
        let thread = window.thread();
        let older = &thread.messages()[..work.cut.index.min(thread.messages().len())];
        let Some(last) = older.last() else { return missing };
        let (verbatim, steps) = (&work.cut.verbatim, &cx.planned_steps);
        let content = summary::content(&text, older, thread.summary(), (verbatim, steps), window.message_budget(cx));
        let message = cx.message(Role::User, content, (last.task_id.clone(), None), at.now);
        if message.token_count * 100 > work.cut.freed * SUMMARY_WORTH_PERCENT {
            return SummaryOutcome::Failed("the summary is not shorter than the messages it would replace");
        }
        let until = last.message_id.clone();
        let rest = (window.fixed_tokens() + thread.tokens()).checked_sub(work.cut.freed);
        let (Some(rest), Some(kept)) = (rest, thread.messages().len().checked_sub(work.cut.summarized_count())) else {
            return SummaryOutcome::Failed("the conversation changed while the summary was written");
        };
        let after = rest + message.token_count;
        let compaction = Compaction {
            trigger: work.trigger,
            focus: work.focus.clone(),
            summary: text,
            model: work.model.as_ref().map(|model| model.name.clone()),
            summarised: work.cut.summarized_count() as u64,
            kept: kept as u64,
            tokens_before: window.next_input_tokens(cx),
            tokens_after: window.to_model_tokens(after, cx),
        };
        let verbatim = work.cut.verbatim.clone();
        cx.out.record(Record::Compacted {
            until: until.clone(),
            message: message.clone(),
            compaction: compaction.clone(),
            verbatim: verbatim.clone(),
            usage,
            cost_usd,
            estimated,
        });
        cx.out.commit(Durability::Power);
        window.summarize(&until, &verbatim, message, cx);
        cx.out.event(EventKind::ContextCompacted(compaction));
        SummaryOutcome::Done
    }

    /// Ends the compaction. Returns the next action; `None` if no compaction was in progress.
    pub(crate) fn finish(&mut self) -> Option<AfterSummary> {
        self.work.take().map(|work| work.then)
    }

    /// Cancels the compaction without changing the conversation. If space is needed, the oldest messages are dropped.
    pub(crate) fn give_up(&self, why: &str, window: &mut ContextWindow, cx: &mut TurnContext) {
        let Some(work) = &self.work else { return };
        let follows = match work.trigger {
            CompactionTrigger::Asked => "the conversation is unchanged",
            CompactionTrigger::Threshold => "the oldest messages are dropped if they no longer fit",
            CompactionTrigger::TooLong => "the oldest messages are dropped",
        };
        cx.out.notice(format!("{NOT_COMPACTED}: {why}; {follows}"));
        cx.out.record(Record::CompactionGivenUp);
        window.pause_auto_compaction(cx);
        if work.trigger == CompactionTrigger::TooLong {
            window.drop_half(cx);
        }
    }
}

/// Reports a compaction that an earlier process started but did not finish.
pub(super) fn report_lost_summary(cx: &mut TurnContext) {
    cx.out.record(Record::CompactionGivenUp);
    cx.out.notice("aye exited while compacting: no summary was made, and the conversation is unchanged");
}
