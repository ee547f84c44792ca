//! Compaction, in which a summary replaces older messages or the oldest messages are dropped.
//!
//! A summary request has the same system prompt, tools and messages as any other request. This lets the provider use
//! its cache, and some providers reject a thread that contains calls if no tools are offered. Tool calls in the
//! response are not run.

mod summary;

use super::super::context::estimate;
use super::super::limits::{
    MAX_SUMMARY_TOKENS, MIN_COMPACT_PERCENT, MIN_COMPACT_TOKENS, RECENT_PERCENT, SUMMARY_HALVINGS, SUMMARY_WORTH_PERCENT,
};
use super::super::thread::CompactionPoint;
use super::context_window::ContextWindow;
use super::io::{Effect, InputTime};
use super::response::retry_event;
use super::summary_model::report_replacement;
use super::turn_context::TurnContext;
use crate::ports::{Durability, ModelError, ModelRequest, Record};
use crate::protocol::{
    Compaction, CompactionTrigger, EventKind, Failure, FailureKind, Message, MessageId, ModelFacts, NoticeKind, Part, Role,
    StopReason, TaskId,
};
use crate::session::Expense;
use jiff::Timestamp;
use std::sync::Arc;

/// Prefix of the notice about a compaction that was not performed.
const NOT_COMPACTED: &str = "not compacted";

/// Requested compaction, and the compaction in progress.
#[derive(Debug, Default)]
pub(super) struct Compactor {
    /// Compaction that the user requested during a step. It runs before the next request.
    wanted: Option<SummaryRequest>,
    work: Option<RunningSummary>,
}

/// Input to the compactor.
#[derive(Debug)]
pub(super) enum CompactionInput {
    /// The user requested a compaction.
    Requested {
        focus: Option<String>,
        when: CompactionTime,
    },
    /// The task has ended. A requested compaction runs before the next task. `forbidden` is the reason why no request
    /// may be sent, if any.
    TaskCompleted {
        forbidden: Option<Failure>,
    },
    /// A task's request is about to be sent, after this many attempts.
    RequestDue {
        attempt: u32,
    },
    /// The provider rejected the task's request as too long.
    RequestTooLong,
    /// The user sent a prompt.
    PromptQueued,
    /// The user continued the paused task.
    Continued,
    /// The summary request may be sent. `obstacle` is the reason why the summary model cannot write the summary, if
    /// any.
    Allowed {
        obstacle: Option<String>,
    },
    /// The summary request must not be sent.
    Forbidden(Failure),
    Responded {
        content: Vec<Part>,
        stop_reason: StopReason,
        spent: Expense,
    },
    /// The summary request failed. `wasted` is the usage counted for the request, and `delay_ms` is the delay before
    /// the next attempt in milliseconds, if there will be one.
    Failed {
        error: ModelError,
        wasted: Option<Expense>,
        delay_ms: Option<u64>,
    },
    /// The delay before the next attempt has elapsed, or the user does not want to wait for it.
    RetryDue,
    /// A fallback model is being opened.
    FallbackOpening {
        ticket: u64,
    },
    /// No fallback model is available after this failure.
    NoFallback(Failure),
    /// A different model is now in use and writes the summary.
    ModelReplaced,
    /// The messages in a request may now have at most this many estimated tokens.
    BudgetChanged(u64),
    /// The user stopped the compaction.
    Stopped,
    /// The task that needs the compaction is ending.
    TaskEnded,
}

/// Time at which a requested compaction can run.
#[derive(Debug)]
pub(super) enum CompactionTime {
    /// Immediately. `forbidden` is the reason why no request may be sent, if any.
    Now { forbidden: Option<Failure> },
    /// Before the next step starts.
    BeforeStep,
    /// Not now, because a rewind is restoring files.
    AfterRewind,
}

/// State of the other sub-machines that the compactor needs.
pub(super) struct CompactionFacts<'a> {
    pub window: &'a ContextWindow,
    /// Task that is running or can be continued.
    pub task: Option<TaskId>,
    /// Model that will write the next summary, if it is not the current model.
    pub model: Option<ModelFacts>,
}

/// Output of the compactor.
#[derive(Debug)]
pub(super) enum CompactionOutput {
    /// A compaction has begun, and its request may be sent.
    Begun,
    /// The summary request may be retried, unless that is forbidden.
    Ready,
    Send(Box<SummaryCall>),
    /// A summary replaces these messages.
    Summarized {
        until: MessageId,
        verbatim: Vec<MessageId>,
        message: Message,
    },
    /// No automatic compaction may start until the thread has grown.
    AutomaticPaused,
    /// The older half of the messages must be dropped.
    HalfDropped,
    /// After this failure, a fallback model has to write the summary.
    FallbackNeeded(Failure),
    /// The task cannot continue without the summary and waits for the user.
    TaskPaused(Failure),
    /// The task cannot continue without the summary, and the summary request is forbidden.
    TaskForbidden(Failure),
    /// The compaction has ended.
    Ended(AfterSummary),
}

/// Compaction requested by the user.
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
    /// Estimated number of tokens available for the messages to summarize.
    budget: u64,
    halvings: u32,
    attempt: u32,
    since: Timestamp,
    /// Ticket of the retry timer, while the request waits for it.
    ticket: Option<u64>,
    /// Whether the request waits for a fallback model to be opened.
    waits_for_model: bool,
    /// Model that writes the summary, if it is not the current model.
    model: Option<ModelFacts>,
    then: AfterSummary,
}

/// Action to take after a compaction, whether or not it succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterSummary {
    Nothing,
    /// Send the request that needed the space.
    Request {
        attempt: u32,
    },
    /// Continue the paused task.
    Continue,
    /// Start the next queued message.
    NextTask,
}

/// Request for a summary.
#[derive(Debug)]
pub(super) struct SummaryCall {
    pub request: ModelRequest,
    /// Model that receives the request, if it is not the current model.
    pub model: Option<ModelFacts>,
    pub estimated_input_tokens: u64,
}

/// Result of a summary response.
#[derive(Debug)]
enum SummaryOutcome {
    /// Summary that replaces the messages.
    Done(CompactionOutput),
    /// The messages to summarize do not fit into the context window.
    TooLong,
    /// No summary was written, for the given reason.
    Failed(&'static str),
}

/// Queries.
impl Compactor {
    /// Returns whether a compaction is in progress.
    pub(crate) fn is_running(&self) -> bool {
        self.work.is_some()
    }

    /// Returns whether a task's request will be sent after the compaction in progress.
    pub(crate) fn precedes_request(&self) -> bool {
        self.work.as_ref().is_some_and(|work| matches!(work.then, AfterSummary::Request { .. }))
    }

    /// Returns the time at which the summary request was sent, or `None` if no request is in progress.
    pub(crate) fn requested_at(&self) -> Option<Timestamp> {
        self.work.as_ref().filter(|work| work.ticket.is_none()).map(|work| work.since)
    }

    /// Returns the number of the attempt in progress, or `None` if no request is in progress.
    pub(crate) fn attempt(&self) -> Option<u32> {
        self.work.as_ref().filter(|work| work.ticket.is_none()).map(|work| work.attempt + 1)
    }

    /// Returns the model that writes the summary, if it is not the current model.
    pub(crate) fn model(&self) -> Option<&ModelFacts> {
        self.work.as_ref().and_then(|work| work.model.as_ref())
    }

    /// Returns whether the summary request is waiting for a fallback model.
    pub(crate) fn waits_for_model(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.waits_for_model)
    }

    /// Returns the estimated number of tokens in all messages to summarize, including the instructions for the
    /// summary.
    pub(crate) fn message_tokens(&self, window: &ContextWindow) -> u64 {
        let Some(work) = &self.work else { return 0 };
        let messages = window.thread().messages_before(work.cut.index, u64::MAX);
        let tokens: u64 = messages.iter().map(|message| message.token_count).sum();
        tokens + estimate(&[summary::question(work.focus.as_deref())])
    }

    /// Returns the ticket of the retry timer that the summary request is waiting for, if any.
    pub(crate) fn ticket(&self) -> Option<u64> {
        self.work.as_ref().and_then(|work| work.ticket)
    }
}

/// Input handling.
impl Compactor {
    /// Handles an input. Records and events are written to the context; the returned outputs are for the other
    /// sub-machines.
    pub(crate) fn handle(
        &mut self,
        input: CompactionInput,
        facts: &CompactionFacts<'_>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Vec<CompactionOutput> {
        match input {
            CompactionInput::Requested { focus, when } => self.on_request(focus, when, facts, cx, at),
            CompactionInput::TaskCompleted { forbidden } => match self.wanted.take() {
                Some(wanted) => self.begin_now(wanted.focus, AfterSummary::NextTask, forbidden, facts, cx, at),
                None => Vec::new(),
            },
            CompactionInput::RequestDue { attempt } => self.make_room(attempt, facts, cx, at),
            CompactionInput::RequestTooLong => {
                let then = AfterSummary::Request { attempt: 0 };
                self.begin((CompactionTrigger::TooLong, None, then), facts, cx, at).unwrap_or_default()
            }
            CompactionInput::PromptQueued => self.start_next_after(),
            CompactionInput::Continued => self.continue_after(cx),
            CompactionInput::Allowed { obstacle } => self.send(obstacle, facts, cx, at),
            CompactionInput::Forbidden(failure) => self.on_forbidden(failure, cx),
            CompactionInput::Responded { content, stop_reason, spent } => {
                self.on_response((&content, stop_reason), spent, facts.window, cx, at)
            }
            CompactionInput::Failed { error, wasted, delay_ms } => self.on_error(error, (wasted, delay_ms), facts.window, cx),
            CompactionInput::RetryDue => vec![CompactionOutput::Ready],
            CompactionInput::FallbackOpening { ticket } => self.wait_for_model(ticket),
            CompactionInput::NoFallback(failure) => self.on_no_fallback(failure, cx),
            CompactionInput::ModelReplaced => {
                self.write_with(None);
                vec![CompactionOutput::Ready]
            }
            CompactionInput::BudgetChanged(budget) => self.limit_budget(budget),
            CompactionInput::Stopped => self.stop(cx),
            CompactionInput::TaskEnded => {
                self.work = None;
                Vec::new()
            }
        }
    }

    fn on_request(
        &mut self,
        focus: Option<String>,
        when: CompactionTime,
        facts: &CompactionFacts<'_>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Vec<CompactionOutput> {
        let focus = focus.map(|focus| focus.trim().to_owned()).filter(|focus| !focus.is_empty());
        match when {
            _ if self.is_running() => cx.out.special_notice(NoticeKind::CompactionRunning, "compaction is already running"),
            CompactionTime::AfterRewind => cx.out.notice("a rewind is restoring files; try again in a moment"),
            CompactionTime::BeforeStep => {
                self.wanted = Some(SummaryRequest { focus });
                cx.out.notice("the conversation will be compacted before the next step");
            }
            CompactionTime::Now { forbidden } => {
                return self.begin_now(focus, AfterSummary::Nothing, forbidden, facts, cx, at);
            }
        }
        Vec::new()
    }

    /// Starts a requested compaction, or reports why it cannot start.
    fn begin_now(
        &mut self,
        focus: Option<String>,
        then: AfterSummary,
        forbidden: Option<Failure>,
        facts: &CompactionFacts<'_>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Vec<CompactionOutput> {
        if let Some(failure) = forbidden {
            not_compacted(failure.problem().with_location(NOT_COMPACTED).one_line(), cx);
            return Vec::new();
        }
        self.begin((CompactionTrigger::Asked, focus, then), facts, cx, at).unwrap_or_else(|why| {
            cx.out.notice(why);
            Vec::new()
        })
    }

    /// Starts a compaction before a request, if one is due.
    fn make_room(
        &mut self,
        attempt: u32,
        facts: &CompactionFacts<'_>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Vec<CompactionOutput> {
        let then = AfterSummary::Request { attempt };
        if let Some(SummaryRequest { focus }) = self.wanted.take() {
            match self.begin((CompactionTrigger::Asked, focus, then), facts, cx, at) {
                Ok(outputs) => return outputs,
                Err(why) => cx.out.notice(why),
            }
        }
        if !facts.window.is_full(cx) {
            return Vec::new();
        }
        let begun = self.begin((CompactionTrigger::Threshold, None, then), facts, cx, at);
        begun.unwrap_or_else(|_| vec![CompactionOutput::AutomaticPaused])
    }

    /// Arranges for the next queued message to start after the compaction in progress.
    fn start_next_after(&mut self) -> Vec<CompactionOutput> {
        if let Some(work) = self.work.as_mut().filter(|work| work.then == AfterSummary::Nothing) {
            work.then = AfterSummary::NextTask;
        }
        Vec::new()
    }

    /// Arranges for a paused task to continue after the compaction in progress.
    fn continue_after(&mut self, cx: &mut TurnContext) -> Vec<CompactionOutput> {
        if let Some(work) = self.work.as_mut().filter(|work| !matches!(work.then, AfterSummary::Request { .. })) {
            work.then = AfterSummary::Continue;
            cx.out.notice("the task continues as soon as the summary is ready");
        }
        Vec::new()
    }
}

/// Start of a compaction, and its requests.
impl Compactor {
    /// Starts a compaction. Returns an error with the reason if a compaction would not help.
    fn begin(
        &mut self,
        (trigger, focus, then): (CompactionTrigger, Option<String>, AfterSummary),
        CompactionFacts { window, task, model }: &CompactionFacts<'_>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Result<Vec<CompactionOutput>, String> {
        let (thread, budget) = (window.thread(), window.message_budget(cx));
        let recent = budget * RECENT_PERCENT / 100;
        // A requested compaction ignores the free space; after an overlong request, the actual size of the context
        // window is unknown.
        let of_thread = thread.tokens() * RECENT_PERCENT / 100;
        let (keep, least) = match trigger {
            CompactionTrigger::Asked => (recent.min(of_thread), MIN_COMPACT_TOKENS),
            CompactionTrigger::Threshold => (recent, budget * MIN_COMPACT_PERCENT / 100),
            CompactionTrigger::TooLong => {
                (recent.min(of_thread), (thread.tokens() * MIN_COMPACT_PERCENT / 100).max(MIN_COMPACT_TOKENS))
            }
        };
        let nothing = || "nothing to compact: the conversation is short enough".to_owned();
        let cut = thread.plan_compaction(keep, task.as_ref()).filter(|cut| cut.freed >= least).ok_or_else(nothing)?;
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
        let (waits_for_model, model) = (false, model.clone());
        self.work =
            Some(RunningSummary { trigger, focus, cut, budget, halvings, attempt, since, ticket, waits_for_model, model, then });
        Ok(vec![CompactionOutput::Begun])
    }

    /// Sends the summary request. `obstacle` is the reason why the summary model cannot write the summary, if any.
    fn send(
        &mut self,
        obstacle: Option<String>,
        facts: &CompactionFacts<'_>,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Vec<CompactionOutput> {
        if let Some(why) = obstacle {
            self.replace_model(&why, cx);
        }
        let call = self.request(facts.window, cx, at);
        call.map(|call| CompactionOutput::Send(Box::new(call))).into_iter().collect()
    }

    /// Makes the current model write the summary and reports why it replaces the summary model.
    fn replace_model(&mut self, why: &str, cx: &mut TurnContext) {
        if let Some(name) = self.model().map(|model| model.name.clone()) {
            report_replacement(&name, why, cx);
            self.write_with(None);
        }
    }

    /// Handles a summary request that must not be sent. If a task needs the summary, the task waits or fails;
    /// otherwise, the reason is reported.
    fn on_forbidden(&mut self, failure: Failure, cx: &mut TurnContext) -> Vec<CompactionOutput> {
        if self.precedes_request() {
            self.work = None;
            return vec![CompactionOutput::TaskForbidden(failure)];
        }
        not_compacted(failure.problem().with_location(NOT_COMPACTED).one_line(), cx);
        cx.out.record(Record::CompactionGivenUp);
        self.finish()
    }

    /// Handles a failed summary request. It is retried, with another model if necessary, or the compaction ends.
    fn on_error(
        &mut self,
        error: ModelError,
        (wasted, delay_ms): (Option<Expense>, Option<u64>),
        window: &ContextWindow,
        cx: &mut TurnContext,
    ) -> Vec<CompactionOutput> {
        let Some(work) = self.work.as_mut().filter(|work| work.ticket.is_none()) else { return Vec::new() };
        work.attempt += 1;
        let attempt = work.attempt;
        let delay_ms = delay_ms.filter(|_| error.failure.retryable);
        if self.model().is_some() && delay_ms.is_none() {
            self.replace_model(&error.failure.message, cx);
            cx.out.commit(Durability::Process);
            return vec![CompactionOutput::Ready];
        }
        if error.failure.kind == FailureKind::ContextTooLong {
            return self.shorten(window, cx);
        }
        let Some(delay_ms) = delay_ms else {
            if !error.failure.retryable {
                return self.give_up(&error.failure.message, cx);
            }
            return vec![CompactionOutput::FallbackNeeded(error.failure)];
        };
        let ticket = cx.numbers.next_ticket();
        self.wait_for(ticket);
        let max_attempts = cx.options.backoff.max_retries;
        cx.out.commit(Durability::Process);
        cx.out.event(retry_event(error, (attempt, max_attempts), delay_ms, wasted));
        cx.out.effect(Effect::Wake { after_ms: delay_ms, ticket });
        Vec::new()
    }

    /// Ends a compaction whose retries are exhausted. If a task needs the summary, the task waits for the user,
    /// because its own request would fail too.
    fn on_no_fallback(&mut self, failure: Failure, cx: &mut TurnContext) -> Vec<CompactionOutput> {
        if !self.precedes_request() {
            return self.give_up(&failure.message, cx);
        }
        self.work = None;
        vec![CompactionOutput::TaskPaused(failure)]
    }

    /// Selects the model that writes the summary, or the current model if `None`. The attempts are counted from zero
    /// again.
    fn write_with(&mut self, model: Option<ModelFacts>) {
        if let Some(work) = &mut self.work {
            (work.model, work.attempt, work.halvings) = (model, 0, 0);
        }
    }

    /// Builds the summary request. A model other than the current one receives all messages.
    fn request(&mut self, window: &ContextWindow, cx: &TurnContext, at: InputTime) -> Option<SummaryCall> {
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
            tools: cx.options.tools.definitions.clone(),
            max_output_tokens,
            images: None,
            // The user chose the effort for the current model, not for the summary model.
            effort: cx.options.effort.filter(|_| other.is_none()),
        };
        Some(SummaryCall { request, model: work.model.clone().filter(|_| other.is_some()), estimated_input_tokens })
    }

    /// Lowers the limit on the messages to summarize after the context window has changed.
    fn limit_budget(&mut self, budget: u64) -> Vec<CompactionOutput> {
        if let Some(work) = &mut self.work {
            work.budget = work.budget.min(budget);
        }
        Vec::new()
    }

    /// Makes the request wait for a timer before it is retried.
    fn wait_for(&mut self, ticket: u64) {
        if let Some(work) = &mut self.work {
            work.ticket = Some(ticket);
        }
    }

    /// Makes the request wait for a fallback model before it is retried.
    fn wait_for_model(&mut self, ticket: u64) -> Vec<CompactionOutput> {
        self.wait_for(ticket);
        if let Some(work) = &mut self.work {
            work.waits_for_model = true;
        }
        Vec::new()
    }

    /// Shortens a summary request that did not fit, so it can be retried.
    fn shorten(&mut self, window: &ContextWindow, cx: &mut TurnContext) -> Vec<CompactionOutput> {
        let Some(work) = &mut self.work else { return Vec::new() };
        work.halvings += 1;
        let sent: u64 =
            window.thread().messages_before(work.cut.index, work.budget).iter().map(|message| message.token_count).sum();
        work.budget = sent.min(work.budget) / 2;
        let is_empty = window.thread().messages_before(work.cut.index, work.budget).is_empty();
        if work.halvings > SUMMARY_HALVINGS || is_empty {
            return self.give_up("the messages to summarize do not fit the context window either", cx);
        }
        cx.out.commit(Durability::Process);
        vec![CompactionOutput::Ready]
    }
}

/// Handling of the response, and the end of a compaction.
impl Compactor {
    /// Handles the response to the summary request.
    fn on_response(
        &mut self,
        (content, stop_reason): (&[Part], StopReason),
        spent: Expense,
        window: &ContextWindow,
        cx: &mut TurnContext,
        at: InputTime,
    ) -> Vec<CompactionOutput> {
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
        let why = match outcome {
            SummaryOutcome::Done(summarized) => return std::iter::once(summarized).chain(self.finish()).collect(),
            SummaryOutcome::TooLong => None,
            SummaryOutcome::Failed(why) => Some(why),
        };
        let Expense { usage, cost_usd, estimated } = spent;
        let model = self.model().map(|model| model.name.clone());
        cx.out.record(Record::Wasted { usage, cost_usd, estimated, model });
        if self.model().is_some() {
            self.replace_model(why.unwrap_or("the messages do not fit its context window"), cx);
            cx.out.commit(Durability::Process);
            return vec![CompactionOutput::Ready];
        }
        match why {
            None => self.shorten(window, cx),
            Some(why) => self.give_up(why, cx),
        }
    }

    /// Replaces the older messages with the summary, unless that would not shorten the thread.
    fn apply(
        &self,
        text: String,
        Expense { usage, cost_usd, estimated }: Expense,
        window: &ContextWindow,
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
        cx.out.event(EventKind::ContextCompacted(compaction));
        SummaryOutcome::Done(CompactionOutput::Summarized { until, verbatim, message })
    }

    /// Ends the compaction.
    fn finish(&mut self) -> Vec<CompactionOutput> {
        self.work.take().map(|work| CompactionOutput::Ended(work.then)).into_iter().collect()
    }

    /// Cancels the compaction. The conversation remains unchanged, except after an overlong request, in which case
    /// its older half is dropped.
    fn give_up(&mut self, why: &str, cx: &mut TurnContext) -> Vec<CompactionOutput> {
        let Some(work) = &self.work else { return Vec::new() };
        let follows = match work.trigger {
            CompactionTrigger::Asked => "the conversation is unchanged",
            CompactionTrigger::Threshold => "the oldest messages are dropped if they no longer fit",
            CompactionTrigger::TooLong => "the oldest messages are dropped",
        };
        not_compacted(format!("{NOT_COMPACTED}: {why}; {follows}"), cx);
        cx.out.record(Record::CompactionGivenUp);
        let drops = (work.trigger == CompactionTrigger::TooLong).then_some(CompactionOutput::HalfDropped);
        std::iter::once(CompactionOutput::AutomaticPaused).chain(drops).chain(self.finish()).collect()
    }

    /// Stops the compaction without changing anything.
    fn stop(&mut self, cx: &mut TurnContext) -> Vec<CompactionOutput> {
        let is_requested = self.requested_at().is_some();
        if self.work.take().is_none() {
            return Vec::new();
        }
        if is_requested {
            cx.out.effect(Effect::StopModel);
        }
        cx.out.record(Record::CompactionGivenUp);
        cx.out.commit(Durability::Process);
        not_compacted(format!("{NOT_COMPACTED}: stopped by you; the conversation is unchanged"), cx);
        vec![CompactionOutput::AutomaticPaused]
    }
}

fn not_compacted(message: String, cx: &mut TurnContext) {
    cx.out.special_notice(NoticeKind::NotCompacted, message);
}

/// Reports a compaction that an earlier process started but did not finish.
pub(super) fn report_lost_summary(cx: &mut TurnContext) {
    cx.out.record(Record::CompactionGivenUp);
    cx.out.notice("aye exited while compacting: no summary was made, and the conversation is unchanged");
}
