//! Compaction: a summary replaces older messages, or the oldest messages are left out.
//!
//! The summary request has the same system prompt, tools and messages as other requests, so that the provider's cache applies, and because
//! some providers refuse a thread with calls if no tools are offered. If the response contains tool calls, they are not run.

mod aborted;
mod breakdown;
mod summary;
mod too_long;
mod undo;
mod window;

use super::super::context::Counting;
use super::super::limits::{
    COMPACT_LEAST_PERCENT, COMPACT_LEAST_TOKENS, RECENT_PERCENT, SUMMARY_HALVINGS, SUMMARY_MOST_TOKENS, SUMMARY_WORTH_PERCENT,
};
use super::super::thread::CompactionPoint;
use super::approval::waited;
use super::response::CompletedRequest;
use super::{Effect, InputTime, Phase, TurnMachine};
use crate::ports::{Completion, Delta, Durability, ModelError, ModelRequest, Record};
use crate::protocol::{
    Compaction, CompactionTrigger, EventKind, Failure, FailureKind, Message, MessageId, Role, StopReason, TaskStatus,
};
use crate::session::Spent;
use jiff::Timestamp;
use std::sync::Arc;

/// State of the context window, and the compaction in progress.
#[derive(Debug, Default)]
pub(super) struct ContextWindow {
    pub counting: Counting,
    /// Compaction requested by the user during a step; it runs before the next request.
    wanted: Option<SummaryRequest>,
    work: Option<RunningSummary>,
    /// Number of request tokens below which no automatic compaction starts.
    quiet_until: u64,
    /// Whether the request of this step was already found too long.
    too_long: bool,
}

/// Requested compaction.
#[derive(Debug)]
struct SummaryRequest {
    focus: Option<String>,
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
    then: AfterSummary,
}

/// Action after a compaction, successful or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterSummary {
    Nothing,
    /// Send the request that needed the space.
    Request {
        attempt: u32,
    },
    /// Continue the paused task.
    GoOn,
    /// Start the next queued message.
    Next,
}

impl TurnMachine {
    /// Returns whether a compaction is in progress.
    pub(super) fn is_compacting(&self) -> bool {
        self.room.work.is_some()
    }

    /// Starts the next queued message after the compaction in progress.
    pub(super) fn next_after_compaction(&mut self) {
        if let Some(work) = self.room.work.as_mut().filter(|work| work.then == AfterSummary::Nothing) {
            work.then = AfterSummary::Next;
        }
    }

    /// Continues a paused task after the compaction in progress. Returns whether there is one.
    pub(super) fn goes_on_after_compaction(&mut self) -> bool {
        let Some(work) = &mut self.room.work else { return false };
        if !matches!(work.then, AfterSummary::Request { .. }) {
            work.then = AfterSummary::GoOn;
            self.notice("the task continues as soon as the summary is ready");
        }
        true
    }

    /// Compacts the conversation on request of the user.
    pub(super) fn compact(&mut self, focus: Option<String>, at: InputTime) {
        let focus = focus.map(|focus| focus.trim().to_owned()).filter(|focus| !focus.is_empty());
        if self.is_compacting() {
            return self.notice("compaction is already running");
        }
        if self.rewinds.is_running() {
            return self.notice("a rewind is restoring files; try again in a moment");
        }
        let runs = self.task.as_ref().is_some_and(|task| !matches!(task.phase, Phase::Paused)) || self.is_busy_opening();
        if runs {
            self.room.wanted = Some(SummaryRequest { focus });
            return self.notice("the conversation will be compacted before the next step");
        }
        self.compact_now(focus, AfterSummary::Nothing, at);
    }

    /// Runs a compaction requested during the task that just ended, before the next one. Returns whether it started.
    pub(super) fn compact_as_wanted(&mut self, at: InputTime) -> bool {
        self.room.wanted.take().is_some_and(|wanted| self.compact_now(wanted.focus, AfterSummary::Next, at))
    }

    fn compact_now(&mut self, focus: Option<String>, then: AfterSummary, at: InputTime) -> bool {
        if let Some(failure) = self.preflight(at) {
            self.notice(format!("not compacted: {}; {}", failure.message, failure.hint));
            return false;
        }
        match self.begin_compaction(CompactionTrigger::Asked, focus, then, at) {
            Ok(()) => true,
            Err(why) => {
                self.notice(why);
                false
            }
        }
    }

    /// Starts a compaction before a request, if one is due. Returns whether it did; the request follows it.
    pub(super) fn make_room(&mut self, attempt: u32, at: InputTime) -> bool {
        let then = AfterSummary::Request { attempt };
        if let Some(SummaryRequest { focus }) = self.room.wanted.take() {
            match self.begin_compaction(CompactionTrigger::Asked, focus, then, at) {
                Ok(()) => return true,
                Err(why) => self.notice(why),
            }
        }
        let tokens = self.next_input_tokens();
        if self.threshold().is_none_or(|threshold| tokens < threshold.max(self.room.quiet_until)) {
            return false;
        }
        let begun = self.begin_compaction(CompactionTrigger::Threshold, None, then, at).is_ok();
        if !begun {
            self.be_quiet();
        }
        begun
    }

    /// Notes that the request was not too long, because the step got its response or another step begins.
    pub(super) fn request_fitted(&mut self) {
        self.room.too_long = false;
    }

    /// Starts a compaction; the error says why none would help.
    fn begin_compaction(
        &mut self,
        trigger: CompactionTrigger,
        focus: Option<String>,
        then: AfterSummary,
        at: InputTime,
    ) -> Result<(), String> {
        let budget = self.message_budget();
        let recent = budget * RECENT_PERCENT / 100;
        // A requested compaction ignores the free space; after an overlong request, the real window size is unknown.
        let of_thread = self.thread.tokens() * RECENT_PERCENT / 100;
        let (keep, least) = match trigger {
            CompactionTrigger::Asked => (recent.min(of_thread), COMPACT_LEAST_TOKENS),
            CompactionTrigger::Threshold => (recent, budget * COMPACT_LEAST_PERCENT / 100),
            CompactionTrigger::TooLong => {
                (recent.min(of_thread), (self.thread.tokens() * COMPACT_LEAST_PERCENT / 100).max(COMPACT_LEAST_TOKENS))
            }
        };
        let nothing = || "nothing to compact: the conversation is short enough".to_owned();
        // A task that ended early counts too, because it may be continued.
        let task = self.task.as_ref().or(self.ended.as_ref()).map(|task| task.id.clone());
        let cut = self.thread.cut(keep, task.as_ref()).filter(|cut| cut.freed >= least).ok_or_else(nothing)?;
        let question = super::super::context::estimate(&[summary::question(focus.as_deref())]);
        let budget = budget.saturating_sub(question);
        if self.thread.opening(cut.index, budget).is_empty() {
            return Err("nothing to compact: no message fits the context window".to_owned());
        }
        let messages = cut.summarised() as u64;
        let tokens = self.room.counting.real(self.model_name(), cut.freed);
        self.note(Record::CompactionStarted { trigger });
        self.commit(Durability::Process);
        self.emit(EventKind::CompactionStarted { trigger, messages, tokens });
        let work = RunningSummary { trigger, focus, cut, budget, halvings: 0, attempt: 0, since: at.now, ticket: None, then };
        self.room.work = Some(work);
        if let (AfterSummary::Request { .. }, Some(task)) = (then, &mut self.task) {
            task.phase = Phase::Compacting;
        }
        self.ask_for_summary(at);
        Ok(())
    }

    fn ask_for_summary(&mut self, at: InputTime) {
        let Some(work) = &mut self.room.work else { return };
        (work.since, work.ticket) = (at.now, None);
        let mut messages = self.thread.opening(work.cut.index, work.budget);
        let Some(last) = messages.last() else { return };
        let question = summary::question(work.focus.as_deref());
        let message_id = MessageId::new(format!("{}?{}", last.message_id, work.halvings));
        let content = vec![question];
        let token_count = super::super::context::estimate(&content);
        messages.push(Arc::new(Message { message_id, role: Role::User, token_count, content, ..last.as_ref().clone() }));
        let sent: u64 = messages.iter().map(|message| message.token_count).sum();
        let counting = &self.room.counting;
        let estimated_input_tokens = counting.real(self.model_name(), counting.fixed + sent);
        let request = ModelRequest {
            system: self.options.system.clone(),
            messages,
            tools: self.options.tools.clone(),
            max_output_tokens: self.output_limit().min(SUMMARY_MOST_TOKENS),
            images: None,
            effort: self.options.effort,
        };
        self.usage.begin_request(self.options.model.clone(), estimated_input_tokens);
        if self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Compacting)) {
            self.enter(TaskStatus::WaitingForLlm);
        }
        self.emit(EventKind::LlmRequestStarted { model: self.options.model.name.clone(), estimated_input_tokens });
        self.out.push(Effect::Request(request));
    }

    /// Handles the stream of a summary. Its text is not shown as a response, but it costs as much.
    pub(super) fn summary_delta(&mut self, delta: Delta, at: InputTime) {
        if self.summary_ticket().is_some() {
            return;
        }
        self.usage.on_delta(&delta);
        if let Delta::Completed(completion) = delta {
            self.summed_up(completion, at);
        }
    }

    fn summed_up(&mut self, completion: Completion, at: InputTime) {
        let Some(work) = self.room.work.as_ref().filter(|work| work.ticket.is_none()) else { return };
        let latency_ms = waited(work.since, at);
        let Completion { content, stop_reason, usage, model } = completion;
        let model = model.unwrap_or_else(|| self.asked_model().to_owned());
        let spent @ Spent { usage, cost_usd, estimated } = self.spend_on_answer(usage, &content, at);
        self.tell_of_request(CompletedRequest { spent, stop_reason, latency_ms, model });
        let text = summary::words(&content);
        let trouble = match stop_reason {
            StopReason::ContextWindowExceeded => {
                self.note(Record::Wasted { usage, cost_usd, estimated });
                return self.summary_is_too_long(at);
            }
            StopReason::Refusal | StopReason::ContentFilter => Some("the provider's content filter stopped the summary"),
            StopReason::Error | StopReason::Cancelled => Some("the provider ended the summary with an error"),
            _ if text.is_empty() => Some("the model returned no summary"),
            StopReason::EndTurn
            | StopReason::MaxTokens
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::PauseTurn => None,
        };
        if let Some(why) = trouble {
            self.note(Record::Wasted { usage, cost_usd, estimated });
            return self.give_up_compaction(why, at);
        }
        self.take_summary(text, spent, at);
    }

    fn take_summary(&mut self, text: String, Spent { usage, cost_usd, estimated }: Spent, at: InputTime) {
        let budget = self.message_budget();
        let Some(work) = &self.room.work else { return };
        let older = &self.thread.messages()[..work.cut.index.min(self.thread.messages().len())];
        let Some(last) = older.last() else { return };
        let content = summary::content(&text, older, self.thread.summary(), &work.cut.verbatim, budget);
        self.counters.messages += 1;
        let message = Message {
            message_id: MessageId::new(format!("msg_{:05}", self.counters.messages)),
            role: Role::User,
            token_count: super::super::context::estimate(&content),
            content,
            task_id: last.task_id.clone(),
            step_id: None,
            timestamp: at.now,
        };
        if message.token_count * 100 > work.cut.freed * SUMMARY_WORTH_PERCENT {
            self.note(Record::Wasted { usage, cost_usd, estimated });
            return self.give_up_compaction("the summary is not shorter than the messages it would replace", at);
        }
        let until = last.message_id.clone();
        let counting = &self.room.counting;
        let after = counting.fixed + self.thread.tokens() - work.cut.freed + message.token_count;
        let compaction = Compaction {
            trigger: work.trigger,
            focus: work.focus.clone(),
            summary: text,
            summarised: work.cut.summarised() as u64,
            kept: (self.thread.messages().len() - work.cut.summarised()) as u64,
            tokens_before: self.next_input_tokens(),
            tokens_after: counting.real(self.model_name(), after),
        };
        let verbatim = work.cut.verbatim.clone();
        self.note(Record::Compacted {
            until: until.clone(),
            message: message.clone(),
            compaction: compaction.clone(),
            verbatim: verbatim.clone(),
            usage,
            cost_usd,
            estimated,
        });
        self.commit(Durability::Power);
        self.replace_by_summary(&until, &verbatim, message);
        self.emit(EventKind::ContextCompacted(compaction));
        self.after_compaction(at);
    }

    /// Replaces messages with a summary; also used when restoring a journal.
    pub(super) fn replace_by_summary(&mut self, until: &MessageId, verbatim: &[MessageId], message: Message) {
        if self.thread.compact(until, verbatim, message) {
            self.room.counting.counted = 0;
            self.be_quiet();
        }
    }

    fn after_compaction(&mut self, at: InputTime) {
        let Some(work) = self.room.work.take() else { return };
        match work.then {
            AfterSummary::Nothing => self.commit(Durability::Process),
            AfterSummary::Request { attempt } => match self.preflight(at) {
                None => self.request(attempt, at),
                Some(failure) => self.forbidden(failure),
            },
            AfterSummary::GoOn => self.go_on(at),
            AfterSummary::Next => {
                self.commit(Durability::Process);
                self.start_next(at);
            }
        }
    }

    /// Gives up the compaction; the conversation stays unchanged. If space is needed, the oldest messages are left out.
    fn give_up_compaction(&mut self, why: &str, at: InputTime) {
        let Some(work) = &self.room.work else { return };
        let (trigger, too_long) = (work.trigger, work.trigger == CompactionTrigger::TooLong);
        let follows = match trigger {
            CompactionTrigger::Asked => "the conversation is unchanged",
            CompactionTrigger::Threshold => "the oldest messages are left out if they no longer fit",
            CompactionTrigger::TooLong => "the oldest messages are left out",
        };
        self.notice(format!("not compacted: {why}; {follows}"));
        self.note(Record::CompactionGivenUp);
        self.be_quiet();
        if too_long {
            self.drop_half();
        }
        self.after_compaction(at);
    }

    /// Shortens a summary request that does not fit.
    fn summary_is_too_long(&mut self, at: InputTime) {
        let Some(work) = &mut self.room.work else { return };
        work.halvings += 1;
        let sent: u64 = self.thread.opening(work.cut.index, work.budget).iter().map(|message| message.token_count).sum();
        work.budget = sent.min(work.budget) / 2;
        if work.halvings > SUMMARY_HALVINGS || self.thread.opening(work.cut.index, work.budget).is_empty() {
            return self.give_up_compaction("the messages to summarize do not fit the context window either", at);
        }
        self.commit(Durability::Process);
        match self.preflight(at) {
            None => self.ask_for_summary(at),
            Some(failure) => self.no_summary_now(&failure, at),
        }
    }

    pub(super) fn summary_failed(&mut self, error: ModelError, at: InputTime) {
        let Some(work) = self.room.work.as_mut().filter(|work| work.ticket.is_none()) else { return };
        work.attempt += 1;
        let attempt = work.attempt;
        let (then, since) = (work.then, work.since);
        let model = self.asked_model().to_owned();
        let wasted = self.waste(Some(&error));
        let delay_ms = self.options.backoff.delay_ms(attempt, error.retry_after, at.jitter);
        let asked_ms = super::response::asked_ms(error.retry_after);
        let failure = error.failure;
        if !failure.retryable || delay_ms.is_none() {
            self.tell_of_waste(wasted, model, StopReason::Error, since, at);
        }
        if failure.kind == FailureKind::ContextTooLong {
            return self.summary_is_too_long(at);
        }
        if !failure.retryable {
            return self.give_up_compaction(&failure.message, at);
        }
        let Some(delay_ms) = delay_ms else {
            if !matches!(then, AfterSummary::Request { .. }) {
                return self.give_up_compaction(&failure.message, at);
            }
            // The request of the task would fail too, so the task waits for the user.
            self.room.work = None;
            return self.pause(failure);
        };
        self.counters.tickets += 1;
        let ticket = self.counters.tickets;
        if let Some(work) = &mut self.room.work {
            work.ticket = Some(ticket);
        }
        self.commit(Durability::Process);
        self.emit(EventKind::LlmRetry {
            attempt,
            max_attempts: self.options.backoff.max_retries,
            delay_ms,
            asked_ms,
            kind: failure.kind,
            message: failure.message,
            usage: wasted.map(|spent| spent.usage),
            cost_usd: wasted.and_then(|spent| spent.cost_usd),
            estimated: wasted.is_some_and(|spent| spent.estimated),
            request_id: failure.request_id,
        });
        self.out.push(Effect::Wake { after_ms: delay_ms, ticket });
    }

    /// Returns when the summary was requested; `None` while that request waits for a retry.
    pub(super) fn summary_asked_at(&self) -> Option<Timestamp> {
        self.room.work.as_ref().filter(|work| work.ticket.is_none()).map(|work| work.since)
    }

    /// Returns the ticket that the summary request waits for.
    pub(super) fn summary_ticket(&self) -> Option<u64> {
        self.room.work.as_ref().and_then(|work| work.ticket)
    }

    /// Sends the summary request again after its delay. Returns whether the ticket was for it.
    pub(super) fn summary_woken(&mut self, ticket: u64, at: InputTime) -> bool {
        if self.summary_ticket() != Some(ticket) {
            return false;
        }
        match self.preflight(at) {
            None => self.ask_for_summary(at),
            Some(failure) => self.no_summary_now(&failure, at),
        }
        true
    }

    /// Handles a summary request that may not be sent. A task that needs it waits or fails; anything else learns the reason when it starts.
    fn no_summary_now(&mut self, failure: &Failure, at: InputTime) {
        if self.room.work.as_ref().is_some_and(|work| matches!(work.then, AfterSummary::Request { .. })) {
            self.room.work = None;
            return self.forbidden(failure.clone());
        }
        self.notice(format!("not compacted: {}; {}", failure.message, failure.hint));
        self.note(Record::CompactionGivenUp);
        self.after_compaction(at);
    }

    /// Stops the compaction; nothing changes. Returns whether one was in progress outside a running task.
    pub(super) fn stop_compaction(&mut self, at: InputTime) -> bool {
        if self.summary_asked_at().is_some() {
            self.waste_what_streams(at);
        }
        let Some(work) = self.room.work.take() else { return false };
        if work.ticket.is_none() {
            self.out.push(Effect::StopModel);
        }
        self.note(Record::CompactionGivenUp);
        self.commit(Durability::Process);
        self.be_quiet();
        self.notice("not compacted: stopped by you; the conversation is unchanged");
        !matches!(work.then, AfterSummary::Request { .. })
    }
}
