//! Responses from the model: their stream, their result, and the requests that continue or repeat them.

use super::super::limits::PARTIAL_SAVE_MS;
use super::super::retry::Backoff;
use super::outputs::Outputs;
use crate::agent::thread::{CUT, GO_ON};
use crate::ports::{Durability, ModelError, Record};
use crate::protocol::{CallId, EventKind, FailedRequest, Failure, FailureKind, Part, Remedy, StepId, StopReason};
use crate::session::Expense;
use jiff::Timestamp;
use std::time::Duration;

/// Response that is being streamed.
#[derive(Debug)]
pub(super) struct ResponseStream {
    attempt: u32,
    since: Timestamp,
    /// Text that is not in the journal yet.
    unsaved: String,
    saved_at: Timestamp,
    /// Whether any of the response has been shown to the user.
    shown: bool,
    /// Content received so far, added to the thread if the user interrupts the response.
    content: Vec<Part>,
}

/// Input to a streaming response.
#[derive(Debug)]
pub(super) enum StreamInput<'a> {
    /// A piece of text arrived.
    Text { text: String, now: Timestamp },
    /// A piece of reasoning arrived.
    Reasoning(String),
    /// The text received so far is discarded for the given reason.
    Discarded(&'a str),
    /// The user interrupted the response.
    Interrupted,
    /// The session is ending during the response.
    SessionEnding,
}

/// Output of a streaming response.
#[derive(Debug)]
pub(super) enum StreamOutput {
    /// Content of the interrupted response, and the time at which it was requested.
    Interrupted { content: Vec<Part>, since: Timestamp },
    /// Text that was not in the journal yet has been recorded.
    Saved,
}

impl ResponseStream {
    /// Creates the stream for a request. `attempt` counts the retries of the same request.
    pub(crate) fn new(attempt: u32, now: Timestamp) -> Self {
        Self { attempt, since: now, unsaved: String::new(), saved_at: now, shown: false, content: Vec::new() }
    }

    /// Handles an input. `step_id` is the step that the response belongs to.
    pub(crate) fn handle(&mut self, input: StreamInput<'_>, step_id: Option<StepId>, out: &mut Outputs) -> Option<StreamOutput> {
        match input {
            StreamInput::Text { text, now } => self.on_text(text, step_id, out, now),
            StreamInput::Reasoning(text) => self.on_reasoning(text, out),
            StreamInput::Discarded(reason) => self.discard(reason, step_id, out),
            StreamInput::Interrupted => {
                return Some(StreamOutput::Interrupted { content: std::mem::take(&mut self.content), since: self.since });
            }
            StreamInput::SessionEnding => return self.save(&step_id?, out).then_some(StreamOutput::Saved),
        }
        None
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the time at which the request was sent.
    pub(crate) fn requested_at(&self) -> Timestamp {
        self.since
    }

    /// Shows text immediately and saves it at intervals of at least `PARTIAL_SAVE_MS` milliseconds.
    fn on_text(&mut self, text: String, step_id: Option<StepId>, out: &mut Outputs, now: Timestamp) {
        self.shown = true;
        self.unsaved.push_str(&text);
        match self.content.last_mut() {
            Some(Part::Text { text: before }) => before.push_str(&text),
            _ => self.content.push(Part::Text { text: text.clone() }),
        }
        // A clock that was set back must not prevent the text from being saved.
        let save = !(0..PARTIAL_SAVE_MS).contains(&(now.as_millisecond() - self.saved_at.as_millisecond()));
        let saved = save.then(|| std::mem::take(&mut self.unsaved));
        if save {
            self.saved_at = now;
        }
        out.event(EventKind::TextChunk { text });
        if let (Some(text), Some(step_id)) = (saved, step_id) {
            out.record(Record::PartialAnswer { step_id, text });
            out.commit(Durability::Process);
        }
    }

    fn on_reasoning(&mut self, text: String, out: &mut Outputs) {
        // Reasoning without the provider's signature is shown to the user but not sent back.
        match self.content.last_mut() {
            Some(Part::Reasoning { text: before, .. }) => before.push_str(&text),
            _ => self.content.push(Part::Reasoning { text: text.clone(), opaque: None }),
        }
        out.event(EventKind::ReasoningChunk { text });
    }

    /// Records the text that is not in the journal yet. Returns whether there was any.
    fn save(&mut self, step_id: &StepId, out: &mut Outputs) -> bool {
        let text = std::mem::take(&mut self.unsaved);
        let is_unsaved = !text.is_empty();
        if is_unsaved {
            out.record(Record::PartialAnswer { step_id: step_id.clone(), text });
        }
        is_unsaved
    }

    /// If any of the text received so far has been shown, discards it. The text remains in the journal and on the
    /// screen but is not added to the thread.
    fn discard(&mut self, reason: &str, step_id: Option<StepId>, out: &mut Outputs) {
        let Some(step_id) = step_id.filter(|_| self.shown) else { return };
        self.save(&step_id, out);
        out.record(Record::AnswerDiscarded { step_id, reason: reason.to_owned() });
        out.event(EventKind::AnswerDiscarded { reason: reason.to_owned() });
    }
}

/// Next action after a response that contains no calls.
pub(super) enum Continuation {
    Complete,
    /// Ask the model to continue, with this message.
    AskForRest(&'static str),
    Fail(Failure),
}

/// Determines the next action after a response that contains no calls. `empty` says whether the response has no
/// content at all.
pub(super) fn continuation(stop_reason: StopReason, empty: bool) -> Continuation {
    match stop_reason {
        StopReason::EndTurn
        | StopReason::StopSequence
        | StopReason::ToolUse
        | StopReason::Refusal
        | StopReason::ContentFilter
        | StopReason::ContextWindowExceeded
        | StopReason::Error
        | StopReason::Cancelled => Continuation::Complete,
        StopReason::MaxTokens if !empty => Continuation::AskForRest(CUT),
        StopReason::PauseTurn if !empty => Continuation::AskForRest(GO_ON),
        StopReason::MaxTokens | StopReason::PauseTurn => Continuation::Fail(Failure::new(
            FailureKind::InvalidRequest,
            "the model reached its output limit without a response",
            "raise `max_output_tokens` in the policy, or choose another model with -m",
        )),
    }
}

/// Returns the failure for a request that will not be retried, because all retries failed or the requested delay is
/// too long.
pub(super) fn final_failure(error: ModelError, attempt: u32, backoff: &Backoff) -> Failure {
    let mut failure = error.failure;
    if let Some(wait) = error.retry_after.filter(|_| attempt <= backoff.max_retries) {
        failure.hint = format!("the provider asks to wait {}", format_minutes(wait));
        failure.remedy = Some(Remedy::Continue);
    }
    failure
}

/// Returns the event that reports a retry. `wasted` is the usage of the failed request.
pub(super) fn retry_event(
    error: ModelError,
    (attempt, max_attempts): (u32, u32),
    delay_ms: u64,
    wasted: Option<Expense>,
) -> EventKind {
    EventKind::LlmRetry(FailedRequest {
        attempt,
        max_attempts,
        delay_ms,
        asked_ms: error.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        kind: error.failure.kind,
        message: error.failure.message,
        usage: wasted.map(|spent| spent.usage),
        cost_usd: wasted.and_then(|spent| spent.cost_usd),
        estimated: wasted.is_some_and(|spent| spent.estimated),
        request_id: error.failure.request_id,
    })
}

/// Formats a delay in minutes, rounded up so that a retry after it is not too early.
fn format_minutes(wait: Duration) -> String {
    match wait.as_secs().div_ceil(60) {
        minutes @ 0..60 => format!("{minutes} min"),
        minutes if minutes.is_multiple_of(60) => format!("{} h", minutes / 60),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Returns the reason why a response with this stop reason must be discarded together with its text and calls, or
/// `None` if it must not.
pub(super) fn discard_reason(stop_reason: StopReason) -> Option<Failure> {
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
        StopReason::Error | StopReason::Cancelled => Some(Failure::new(
            FailureKind::Protocol,
            "the provider ended the response with an error",
            "continue the task to retry",
        )),
        StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse | StopReason::MaxTokens | StopReason::PauseTurn => {
            None
        }
    }
}

/// Makes the call IDs in a response unique, because results refer to calls by their ID.
pub(super) fn with_unique_call_ids(mut content: Vec<Part>) -> Vec<Part> {
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

/// Removes empty text parts, which providers reject.
pub(super) fn without_empty_text(content: Vec<Part>) -> Vec<Part> {
    content.into_iter().filter(|part| !matches!(part, Part::Text { text } if text.is_empty())).collect()
}
