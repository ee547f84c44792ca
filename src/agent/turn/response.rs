//! Responses of the model: streamed, complete, failed, retried.

use super::super::limits::PARTIAL_SAVE_MS;
use super::approval::waited;
use super::{Call, CallState, Effect, InputTime, Phase, TurnMachine};
use crate::ports::{Completion, Delta, Durability, ModelError, Record};
use crate::protocol::{
    ArgumentFault, Arguments, CallId, ErrorCode, EventKind, Failure, FailureKind, Message, Part, Role, StopReason, TaskStatus,
    ToolError, ToolResult,
};
use crate::session::Spent;
use std::time::Duration;

/// Message to the model after its output limit cut a response.
const CUT: &str = "[The response was cut off by the output limit. Continue exactly where it stopped.]";
/// Message to the model after its provider paused a long turn.
const GO_ON: &str = "[Continue.]";

impl TurnMachine {
    pub(super) fn delta(&mut self, delta: Delta, at: InputTime) {
        self.usage.on_delta(&delta);
        match delta {
            Delta::Text(text) => self.text(text, at),
            Delta::Reasoning(text) => self.reasoning(text),
            Delta::ToolCallProgress { tool_name, bytes } => self.show(EventKind::ToolCallProgress { tool_name, bytes }),
            Delta::Completed(completion) => self.answered(completion, at),
        }
    }

    /// Emits an event of a response that still counts.
    fn show(&mut self, kind: EventKind) {
        if self.task.as_ref().is_some_and(|task| matches!(task.phase, Phase::Requesting(_))) {
            self.emit(kind);
        }
    }

    fn reasoning(&mut self, text: String) {
        if let Some(Phase::Requesting(stream)) = self.task.as_mut().map(|task| &mut task.phase) {
            // Without the provider's signature, it is only shown to the user.
            match stream.content.last_mut() {
                Some(Part::Reasoning { text: before, .. }) => before.push_str(&text),
                _ => stream.content.push(Part::Reasoning { text: text.clone(), opaque: None }),
            }
        }
        self.show(EventKind::ReasoningChunk { text });
    }

    /// Shows the text at once; it is in the journal at most `PARTIAL_SAVE_MS` later.
    fn text(&mut self, text: String, at: InputTime) {
        let Some(task) = &mut self.task else { return };
        let Phase::Requesting(stream) = &mut task.phase else { return };
        stream.shown = true;
        stream.unsaved.push_str(&text);
        match stream.content.last_mut() {
            Some(Part::Text { text: before }) => before.push_str(&text),
            _ => stream.content.push(Part::Text { text: text.clone() }),
        }
        // A clock that was set back must not prevent the save.
        let save = !(0..PARTIAL_SAVE_MS).contains(&(at.now.as_millisecond() - stream.saved_at.as_millisecond()));
        let saved = save.then(|| std::mem::take(&mut stream.unsaved));
        if save {
            stream.saved_at = at.now;
        }
        let step_id = task.step_id.clone();
        self.emit(EventKind::TextChunk { text });
        if let (Some(text), Some(step_id)) = (saved, step_id) {
            self.note(Record::PartialAnswer { step_id, text });
            self.commit(Durability::Process);
        }
    }

    fn answered(&mut self, completion: Completion, at: InputTime) {
        let Some(task) = &self.task else { return };
        let Phase::Requesting(stream) = &task.phase else { return };
        let latency_ms = waited(stream.since, at);
        self.enter(TaskStatus::ProcessingResponse);
        let Completion { content, stop_reason, usage, model } = completion;
        self.note_counted(usage);
        let model = model.unwrap_or_else(|| self.asked_model().to_owned());
        let spent = self.spend_on_answer(usage, &content, at);
        let request = CompletedRequest { spent, stop_reason, latency_ms, model };
        if let Some(failure) = spoiled(stop_reason) {
            return self.answered_in_vain(failure, request, at);
        }
        self.request_fitted();
        let content = with_names_of_their_own(without_empty_text(content));
        let calls: Vec<_> = content
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall(call) => Some(call.clone()),
                Part::Text { .. } | Part::Reasoning { .. } | Part::ToolResult(_) | Part::Image(_) => None,
            })
            .collect();
        let empty = content.is_empty();
        if let Some(message) = self.message(Role::Assistant, content, at) {
            // An empty response is recorded for its cost, but not sent back, because providers refuse it.
            self.note(request.record(message.clone()));
            if let Some(task) = &mut self.task {
                task.parts.note(&message, stop_reason);
            }
            if !empty {
                self.thread.push(message);
            }
        }
        self.tell_of_request(request);
        if calls.is_empty() {
            self.answered_in_words(stop_reason, empty, at);
        } else {
            self.answered_with_calls(calls, stop_reason, at);
        }
    }

    /// Discards a response that the provider withdrew. It is not added to the thread, where it would look like the model's own text.
    fn answered_in_vain(&mut self, failure: Failure, request: CompletedRequest, at: InputTime) {
        let shown = match self.task.as_ref().map(|task| &task.phase) {
            Some(Phase::Requesting(stream)) => stream.shown,
            Some(Phase::Retrying { .. } | Phase::Compacting | Phase::Working(_) | Phase::Paused) | None => false,
        };
        if shown {
            self.discard_answer(&failure.message);
        }
        if let Some(message) = self.message(Role::Assistant, Vec::new(), at) {
            self.note(request.record(message));
        }
        self.tell_of_request(request);
        self.not_answered(failure, at);
    }

    /// Reports the result and cost of any request.
    pub(super) fn tell_of_request(&mut self, request: CompletedRequest) {
        let CompletedRequest { spent, stop_reason, latency_ms, model } = request;
        self.emit(EventKind::LlmRequestCompleted {
            model,
            usage: spent.usage,
            latency_ms,
            stop_reason,
            cost_usd: spent.cost_usd,
            session_cost_usd: self.session_cost(),
            estimated: spent.estimated,
        });
        self.warn_of_budgets();
    }

    fn answered_in_words(&mut self, stop_reason: StopReason, empty: bool, at: InputTime) {
        if empty && stop_reason == StopReason::EndTurn {
            self.emit(EventKind::Notice { message: "the model ended its turn without a response".to_owned() });
        }
        match stop_reason {
            StopReason::EndTurn
            | StopReason::StopSequence
            | StopReason::ToolUse
            | StopReason::Refusal
            | StopReason::ContentFilter
            | StopReason::ContextWindowExceeded
            | StopReason::Error
            | StopReason::Cancelled => self.complete(at),
            StopReason::MaxTokens if !empty => self.ask_for_the_rest(CUT, at),
            StopReason::PauseTurn if !empty => self.ask_for_the_rest(GO_ON, at),
            StopReason::MaxTokens | StopReason::PauseTurn => self.fail(Failure::new(
                FailureKind::InvalidRequest,
                "the model reached its output limit without a response",
                "raise `max_output_tokens` in the policy, or choose another model with -m",
            )),
        }
    }

    fn answered_with_calls(&mut self, calls: Vec<crate::protocol::ToolCall>, stop_reason: StopReason, at: InputTime) {
        self.enter(TaskStatus::CheckingPolicy);
        let cut = stop_reason == StopReason::MaxTokens;
        let rows = self.task.as_mut().map(|task| task.guard.count(&calls)).unwrap_or_default();
        let calls: Vec<Call> = calls
            .into_iter()
            .zip(rows)
            .map(|(call, row)| {
                let state = match &call.arguments {
                    Arguments::Object(_) => CallState::Planning,
                    Arguments::Malformed(text) => CallState::Done(malformed(&call, text, cut)),
                };
                Call { row, ..Call::new(call, state) }
            })
            .collect();
        let to_plan: Vec<_> = calls
            .iter()
            .enumerate()
            .filter(|(_, call)| matches!(call.state, CallState::Planning))
            .map(|(index, call)| (index, call.call.clone()))
            .collect();
        if let Some(task) = &mut self.task {
            task.phase = Phase::Working(calls);
        }
        if to_plan.is_empty() {
            self.planned(Vec::new(), at);
        } else {
            self.out.push(Effect::Plan(to_plan));
        }
    }

    pub(super) fn model_failed(&mut self, error: ModelError, at: InputTime) {
        let Some(task) = &self.task else { return };
        let Phase::Requesting(stream) = &task.phase else { return };
        let attempt = stream.attempt + 1;
        let (shown, since) = (stream.shown, stream.since);
        if shown {
            self.discard_answer(&error.failure.message);
        }
        let model = self.asked_model().to_owned();
        let wasted = self.waste(Some(&error));
        let delay_ms = self.options.backoff.delay_ms(attempt, error.retry_after, at.jitter);
        if !error.failure.retryable || delay_ms.is_none() {
            self.tell_of_waste(wasted, model, StopReason::Error, since, at);
        }
        if !error.failure.retryable {
            return self.not_answered(error.failure, at);
        }
        let Some(delay_ms) = delay_ms else {
            let mut failure = error.failure;
            if let Some(wait) = error.retry_after.filter(|_| attempt <= self.options.backoff.max_retries) {
                failure.hint = format!("the provider asks to wait {}; then continue", in_minutes(wait));
            }
            return self.pause(failure);
        };
        self.counters.tickets += 1;
        let ticket = self.counters.tickets;
        if let Some(task) = &mut self.task {
            task.phase = Phase::Retrying { attempt, ticket };
        }
        self.commit(Durability::Process);
        self.emit(EventKind::LlmRetry {
            attempt,
            max_attempts: self.options.backoff.max_retries,
            delay_ms,
            asked_ms: asked_ms(error.retry_after),
            kind: error.failure.kind,
            message: error.failure.message,
            usage: wasted.map(|spent| spent.usage),
            cost_usd: wasted.and_then(|spent| spent.cost_usd),
            estimated: wasted.is_some_and(|spent| spent.estimated),
            request_id: error.failure.request_id,
        });
        self.warn_of_budgets();
        self.out.push(Effect::Wake { after_ms: delay_ms, ticket });
    }

    /// Handles a request that failed for good. An overlong request is shortened once.
    fn not_answered(&mut self, failure: Failure, at: InputTime) {
        if failure.kind != FailureKind::ContextTooLong {
            return self.fail(failure);
        }
        if !self.shorten(at) {
            self.fail(self.cannot_be_shortened(failure));
        }
    }

    /// Discards the text streamed so far. The journal and the screen keep it, the thread does not.
    pub(super) fn discard_answer(&mut self, reason: &str) {
        let Some(task) = &mut self.task else { return };
        let unsaved = match &mut task.phase {
            Phase::Requesting(stream) => std::mem::take(&mut stream.unsaved),
            Phase::Retrying { .. } | Phase::Compacting | Phase::Working(_) | Phase::Paused => String::new(),
        };
        let Some(step_id) = task.step_id.clone() else { return };
        if !unsaved.is_empty() {
            self.note(Record::PartialAnswer { step_id: step_id.clone(), text: unsaved });
        }
        self.note(Record::AnswerDiscarded { step_id, reason: reason.to_owned() });
        self.emit(EventKind::AnswerDiscarded { reason: reason.to_owned() });
    }

    /// Retries a pending request at once, on request of the user.
    pub(super) fn retry_now(&mut self, at: InputTime) {
        if let Some(ticket) = self.summary_ticket() {
            return self.woken(ticket, at);
        }
        match self.task.as_ref().map(|task| &task.phase) {
            Some(Phase::Retrying { ticket, .. }) => self.woken(*ticket, at),
            Some(Phase::Paused) => self.notice("the task is paused; continue it to retry"),
            Some(Phase::Requesting(_) | Phase::Compacting | Phase::Working(_)) | None => {
                self.notice("no request is waiting to be retried");
            }
        }
    }

    pub(super) fn woken(&mut self, ticket: u64, at: InputTime) {
        if self.summary_woken(ticket, at) {
            return;
        }
        let Some(task) = &self.task else { return };
        if let Phase::Retrying { attempt, ticket: waiting } = task.phase
            && waiting == ticket
        {
            match self.preflight(at) {
                None => self.request(attempt, at),
                Some(failure) => self.forbidden(failure),
            }
        }
    }
}

/// Formats a delay, rounded up so that a retry after it is not too early.
fn in_minutes(wait: Duration) -> String {
    match wait.as_secs().div_ceil(60) {
        minutes @ 0..60 => format!("{minutes} min"),
        minutes if minutes.is_multiple_of(60) => format!("{} h", minutes / 60),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Returns the delay in milliseconds that a provider asks for.
pub(super) fn asked_ms(retry_after: Option<Duration>) -> Option<u64> {
    retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

/// Result of a request, besides its content.
pub(super) struct CompletedRequest {
    pub spent: Spent,
    pub stop_reason: StopReason,
    pub latency_ms: u64,
    pub model: String,
}

impl CompletedRequest {
    pub(super) fn record(&self, message: Message) -> Record {
        let Spent { usage, cost_usd, estimated } = self.spent;
        let (stop_reason, latency_ms, model) = (self.stop_reason, self.latency_ms, self.model.clone());
        Record::Answer { message, usage, stop_reason, latency_ms, model, cost_usd, estimated }
    }
}

/// Returns why a response that ended so is discarded, including its text and calls.
fn spoiled(stop_reason: StopReason) -> Option<Failure> {
    match stop_reason {
        StopReason::Refusal | StopReason::ContentFilter => Some(Failure::new(
            FailureKind::GuardrailBlocked,
            "LLM_GUARDRAIL_BLOCKED: the provider's content filter stopped the response",
            "rephrase the prompt, or choose another model with -m",
        )),
        StopReason::ContextWindowExceeded => Some(Failure::new(
            FailureKind::ContextTooLong,
            "the conversation no longer fits the model's context window",
            "start a new session, or choose a model with a larger context window",
        )),
        StopReason::Error | StopReason::Cancelled => {
            Some(Failure::new(FailureKind::Protocol, "the provider ended the response with an error", "continue to retry"))
        }
        StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse | StopReason::MaxTokens | StopReason::PauseTurn => {
            None
        }
    }
}

/// Renames duplicate calls of a response, because results find their calls by ID.
fn with_names_of_their_own(mut content: Vec<Part>) -> Vec<Part> {
    let mut taken = std::collections::HashSet::new();
    for part in &mut content {
        let Part::ToolCall(call) = part else { continue };
        let given = call.tool_call_id.clone();
        let mut number = 1;
        while !taken.insert(call.tool_call_id.clone()) {
            number += 1;
            call.tool_call_id = CallId::new(format!("{given}-{number}"));
        }
    }
    content
}

/// Removes empty text, which providers refuse.
fn without_empty_text(content: Vec<Part>) -> Vec<Part> {
    content.into_iter().filter(|part| !matches!(part, Part::Text { text } if text.is_empty())).collect()
}

fn malformed(call: &crate::protocol::ToolCall, text: &str, cut: bool) -> ToolResult {
    let name = &call.tool_name;
    let start: String = text.chars().take(200).collect();
    let message = match call.arguments.fault() {
        Some(ArgumentFault::OverLimit(limit)) => {
            format!(
                "the arguments of `{name}` exceed a limit ({limit}), so nothing was run; use several smaller calls; they begin: {start}"
            )
        }
        Some(ArgumentFault::Unfinished) if !cut => {
            format!("the call of `{name}` is incomplete, so nothing was run; call it again; its arguments begin: {start}")
        }
        _ => {
            let why = if cut { "cut by the output limit" } else { "not a JSON object" };
            format!("the arguments of `{name}` are {why}, so nothing was run; they begin: {start}")
        }
    };
    ToolResult::refused(call.tool_call_id.clone(), call.tool_name.clone(), ToolError::new(ErrorCode::InvalidRequest, message))
}
