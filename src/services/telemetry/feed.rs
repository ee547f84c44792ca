//! Conversion of session changes to spans and metrics. Each task has a trace that contains its requests and calls.

use super::metric::{RequestFacts, metrics};
use super::{METRIC, SPAN};
use crate::ports::TaskEnd;
use crate::protocol::{CallId, Message, StopReason, TaskId, ToolResult, ToolStatus};
use crate::services::SessionFacts;
use crate::services::otlp::{Attributes, add_identity, nanos};
use crate::services::redaction::{RedactText, redacted_json};
use crate::session::{CallChange, Change, Expense};
use crate::store::{LoggedDecision, OutboxEntry, OutboxFeed, OutboxSink};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// OTLP span kind of an internal operation.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
/// OTLP status code of a failed span.
const ERROR: u8 = 2;
/// Maximum number of calls whose arguments are kept in memory.
const MAX_CALLS: usize = 256;

pub(in super::super) struct TelemetryFeed {
    facts: SessionFacts,
    redact: RedactText,
    content: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    task: Option<TaskTrace>,
    steps: u64,
    /// Provider of the current model.
    provider: Option<String>,
    /// Arguments of the calls in the current step, if sending content is enabled.
    arguments: BTreeMap<CallId, String>,
}

struct TaskTrace {
    id: TaskId,
    started: jiff::Timestamp,
    prompt: Option<String>,
}

/// Span that is being built.
struct SpanDraft {
    id: String,
    parent: Option<String>,
    name: String,
    kind: u8,
    start: jiff::Timestamp,
    attributes: Attributes,
    /// Status message of a failed span, which gives the reason.
    failure: Option<String>,
}

impl TelemetryFeed {
    pub(in super::super) fn new(facts: SessionFacts, redact: RedactText, content: bool) -> Self {
        Self { facts, redact, content, state: Mutex::default() }
    }

    /// Returns a stable ID of this length in bytes. A span that is sent twice therefore has the same ID.
    fn id(&self, bytes: usize, parts: &[&str]) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [self.facts.session_id.as_str()].iter().chain(parts) {
            hasher.update(part.as_bytes());
            hasher.update(&[0]);
        }
        hasher.finalize().to_hex().chars().take(2 * bytes).collect()
    }

    fn span(&self, draft: SpanDraft, task: &TaskId, end: jiff::Timestamp) -> OutboxEntry {
        let SpanDraft { id, parent, name, kind, start, mut attributes, failure } = draft;
        attributes.text("gen_ai.conversation.id", Some(self.facts.session_id.as_str()));
        if let Some(session) = &self.facts.service_session {
            add_identity(&mut attributes, session);
        }
        let mut span = json!({
            "traceId": self.id(16, &["task", task.as_str()]), "spanId": id, "name": name, "kind": kind,
            "startTimeUnixNano": nanos(start.min(end)), "endTimeUnixNano": nanos(end), "attributes": attributes.into_value(),
        });
        if let Value::Object(members) = &mut span {
            if let Some(parent) = parent {
                members.insert("parentSpanId".to_owned(), parent.into());
            }
            if let Some(failure) = failure {
                members.insert("status".to_owned(), json!({"code": ERROR, "message": (self.redact)(&failure)}));
            }
        }
        entry(SPAN, &span)
    }

    /// Returns a redacted message in the format specified by the conventions.
    fn message(&self, role: &str, text: &str) -> String {
        json!([{"role": role, "parts": [{"type": "text", "content": (self.redact)(text)}]}]).to_string()
    }

    fn answered(&self, state: &mut State, answer: &Answer<'_>, now: jiff::Timestamp) -> Vec<OutboxEntry> {
        state.steps += 1;
        let Some(task) = &state.task else { return Vec::new() };
        let usage = answer.spent.usage;
        let start = earlier(now, answer.latency_ms);
        let (provider, model) = match answer.model.split_once('/') {
            Some((provider, model)) => (provider, model),
            None => (state.provider.as_deref().or(self.facts.provider.as_deref()).unwrap_or_default(), answer.model),
        };
        let provider = provider_name(provider);
        let mut attributes = Attributes::default();
        attributes.text("gen_ai.operation.name", Some("chat"));
        attributes.text("gen_ai.provider.name", Some(provider).filter(|name| !name.is_empty()));
        attributes.text("gen_ai.request.model", Some(model));
        attributes.number("gen_ai.usage.input_tokens", Some(usage.input_tokens));
        attributes.number("gen_ai.usage.output_tokens", Some(usage.output_tokens));
        attributes.texts("gen_ai.response.finish_reasons", &[finish_reason(answer.stop_reason)]);
        if self.content {
            attributes.text("gen_ai.output.messages", Some(&self.message("assistant", &answer.message.text())));
        }
        let draft = SpanDraft {
            id: self.id(8, &["response", answer.message.message_id.as_str()]),
            parent: Some(self.id(8, &["root", task.id.as_str()])),
            name: format!("chat {model}"),
            kind: CLIENT,
            start,
            attributes,
            failure: None,
        };
        let request = RequestFacts {
            provider,
            model,
            start,
            end: now,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            seconds: answer.latency_ms as f64 / 1000.0,
        };
        let span = self.span(draft, &task.id, now);
        std::iter::once(span).chain(metrics(&request).iter().map(|metric| entry(METRIC, metric))).collect()
    }

    fn finished(&self, state: &mut State, result: &ToolResult, latency_ms: u64, now: jiff::Timestamp) -> Option<OutboxEntry> {
        let task = state.task.as_ref()?;
        let id = &result.tool_call_id;
        let mut attributes = Attributes::default();
        attributes.text("gen_ai.operation.name", Some("execute_tool"));
        attributes.text("gen_ai.tool.name", Some(&result.tool_name));
        attributes.text("gen_ai.tool.type", Some("function"));
        attributes.text("gen_ai.tool.call.id", Some(id.as_str()));
        let code = result.error.as_ref().and_then(|error| serde_json::to_value(error.code).ok());
        attributes.text("error.type", code.as_ref().and_then(Value::as_str));
        let arguments = state.arguments.remove(id);
        if self.content {
            attributes.text("gen_ai.tool.call.arguments", arguments.map(|text| (self.redact)(&text)).as_deref());
            attributes.text("gen_ai.tool.call.result", Some(&(self.redact)(&result.output_text)));
        }
        let is_failed = result.status != ToolStatus::Succeeded;
        let draft = SpanDraft {
            id: self.id(8, &["call", task.id.as_str(), id.as_str()]),
            parent: Some(self.id(8, &["root", task.id.as_str()])),
            name: format!("execute_tool {}", result.tool_name),
            kind: INTERNAL,
            start: earlier(now, latency_ms),
            attributes,
            failure: is_failed.then(|| code.as_ref().and_then(Value::as_str).unwrap_or("failed").to_owned()),
        };
        Some(self.span(draft, &task.id, now))
    }

    fn ended(&self, state: &mut State, end: &TaskEnd, now: jiff::Timestamp) -> Option<OutboxEntry> {
        // After a failed commit, the same changes come again, so the task must remain.
        let task = state.task.as_ref()?;
        let mut attributes = Attributes::default();
        attributes.text("gen_ai.operation.name", Some("invoke_agent"));
        attributes.text("gen_ai.agent.name", Some(self.facts.agent.as_deref().unwrap_or("aye")));
        attributes.text("aye.workspace.id", Some(self.facts.workspace_id.as_str()));
        attributes.number("aye.task.steps", Some(state.steps));
        if self.content
            && let Some(prompt) = &task.prompt
        {
            attributes.text("gen_ai.input.messages", Some(&self.message("user", prompt)));
        }
        let failure = match end {
            TaskEnd::Completed => None,
            TaskEnd::Failed { failure } => Some((serde_json::to_value(failure.kind).ok(), failure.message.clone())),
            TaskEnd::Cancelled => Some((Some("cancelled".into()), "the task was cancelled".to_owned())),
        };
        let kind = failure.as_ref().and_then(|(kind, _)| kind.as_ref());
        attributes.text("error.type", kind.and_then(Value::as_str));
        let draft = SpanDraft {
            id: self.id(8, &["root", task.id.as_str()]),
            parent: None,
            name: format!("invoke_agent {}", self.facts.agent.as_deref().unwrap_or("aye")),
            kind: INTERNAL,
            start: task.started,
            attributes,
            failure: failure.map(|(_, message)| message),
        };
        Some(self.span(draft, &task.id, now))
    }
}

/// A model's response, as recorded by a change.
struct Answer<'a> {
    message: &'a Message,
    stop_reason: StopReason,
    latency_ms: u64,
    model: &'a str,
    spent: Expense,
}

impl OutboxFeed for TelemetryFeed {
    fn changes(&self, changes: &[Change<'_>], now: jiff::Timestamp) -> Vec<OutboxEntry> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = Vec::new();
        for change in changes {
            match change {
                Change::TaskStarted { prompt, .. } => {
                    let prompt_text = self.content.then(|| prompt.text());
                    *state = State { provider: state.provider.take(), ..State::default() };
                    state.task = Some(TaskTrace { id: prompt.task_id.clone(), started: prompt.timestamp, prompt: prompt_text });
                }
                Change::ModelChosen { choice, .. } => {
                    state.provider = choice.model.split_once('/').map(|(provider, _)| provider.to_owned());
                }
                Change::StepStarted { .. } => state.arguments.clear(),
                Change::Answered { message, stop_reason, latency_ms, model, spent } => {
                    let (stop_reason, latency_ms, spent) = (*stop_reason, *latency_ms, *spent);
                    let answer = Answer { message, stop_reason, latency_ms, model, spent };
                    entries.extend(self.answered(&mut state, &answer, now));
                }
                Change::Call { tool_call_id, change: CallChange::Planned { call, .. } }
                    if self.content && state.arguments.len() < MAX_CALLS =>
                {
                    let arguments = redacted_json(&call.arguments, &self.redact);
                    state.arguments.insert((*tool_call_id).clone(), arguments);
                }
                Change::Call { change: CallChange::Finished { result, latency_ms, .. }, .. } => {
                    entries.extend(self.finished(&mut state, result, *latency_ms, now));
                }
                Change::TaskEnded { end, .. } => entries.extend(self.ended(&mut state, end, now)),
                _ => {}
            }
        }
        entries
    }

    fn decision(&self, _: &LoggedDecision) -> Vec<OutboxEntry> {
        Vec::new()
    }
}

fn entry(kind: &'static str, value: &Value) -> OutboxEntry {
    OutboxEntry { sink: OutboxSink::Telemetry, kind, body: value.to_string().into_bytes() }
}

fn earlier(time: jiff::Timestamp, ms: u64) -> jiff::Timestamp {
    time.checked_sub(jiff::SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX))).unwrap_or(time)
}

/// Returns the name that the conventions specify for a provider.
fn provider_name(provider: &str) -> &str {
    match provider {
        "gemini" | "google" => "gcp.gemini",
        "vertex" => "gcp.vertex_ai",
        "bedrock" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        other => other,
    }
}

fn finish_reason(reason: StopReason) -> &'static str {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::PauseTurn => "stop",
        StopReason::MaxTokens | StopReason::ContextWindowExceeded => "length",
        StopReason::ToolUse => "tool_calls",
        StopReason::Refusal | StopReason::ContentFilter => "content_filter",
        StopReason::Error | StopReason::Cancelled => "error",
    }
}
