//! Event log, which contains one line per event without message content.

use crate::protocol::{
    Event, EventKind, FailedRequest, FailureKind, PlannedStep, ServerStatus, SessionId, StepId, TaskId, WorkspaceId,
    cut_position_before,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

/// Log target for events. Their lines are already JSON and are written unchanged.
pub(crate) const EVENTS: &str = "aye::events";
/// Maximum size of an error message or server name in the log, in bytes.
const MESSAGE_BYTES: usize = 500;
/// Size of the buffer for the start of an event's JSON, which contains the event name, in bytes.
const HEAD_BYTES: usize = 96;

pub(super) fn log(event: &Event) {
    if matches!(
        event.kind,
        EventKind::TextChunk { .. }
            | EventKind::ReasoningChunk { .. }
            | EventKind::ToolOutputChunk { .. }
            | EventKind::EffectsProgress { .. }
    ) {
        // Output chunks are frequent and contain little information.
        if tracing::enabled!(target: EVENTS, tracing::Level::DEBUG) {
            tracing::debug!(target: EVENTS, line = line(event, "DEBUG"));
        }
    } else if tracing::enabled!(target: EVENTS, tracing::Level::INFO) {
        tracing::info!(target: EVENTS, line = line(event, "INFO"));
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogEntry<'a> {
    timestamp: Timestamp,
    level: &'static str,
    target: &'static str,
    event_type: &'a str,
    workspace_id: &'a WorkspaceId,
    session_id: &'a SessionId,
    task_id: Option<&'a TaskId>,
    step_id: Option<&'a StepId>,
    payload: Value,
}

/// Formats the log line for an event. The line contains the event's IDs and the names, numbers and outcomes in its
/// payload, but no text from the user, the model or a tool.
fn line(event: &Event, level: &'static str) -> String {
    let mut head = [0; HEAD_BYTES];
    let logged = LogEntry {
        timestamp: event.timestamp,
        level,
        target: EVENTS,
        event_type: event_name(&event.kind, &mut head),
        workspace_id: &event.workspace_id,
        session_id: &event.session_id,
        task_id: event.task_id.as_ref(),
        step_id: event.step_id.as_ref(),
        payload: payload(&event.kind),
    };
    serde_json::to_string(&logged).unwrap_or_default()
}

/// Returns an event's name, which appears at the start of its JSON. The rest of the event, which may contain a
/// command's entire output, is not serialized.
fn event_name<'a>(kind: &EventKind, head: &'a mut [u8; HEAD_BYTES]) -> &'a str {
    // Serialization fails once the buffer is full, but by then the name has been written.
    let _ = serde_json::to_writer(&mut head[..], kind);
    let name = head.split(|byte| *byte == b'"').nth(3);
    name.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
}

/// Returns the data to log for an event. Events not handled below are logged with an empty payload.
fn payload(kind: &EventKind) -> Value {
    let parts = [session_payload, model_payload, call_payload, context_payload, server_payload];
    parts.iter().find_map(|part| part(kind)).unwrap_or_else(|| json!({}))
}

/// Returns the data to log for an event that concerns the session, its tasks or its steps.
fn session_payload(kind: &EventKind) -> Option<Value> {
    let payload = match kind {
        EventKind::SessionStarted { model, mode, resumed, .. } => {
            json!({"model": model, "mode": mode, "resumed": resumed, "executionEnvironment": "local"})
        }
        EventKind::StateChanged { session_status, task } => json!({"sessionStatus": session_status, "task": task}),
        EventKind::TaskStarted { prompt, max_steps } => json!({"promptBytes": prompt.len(), "maxSteps": max_steps}),
        EventKind::QueueChanged { waiting } => json!({"count": waiting.len()}),
        EventKind::StepStarted { step_count }
        | EventKind::StepCompleted { step_count }
        | EventKind::TaskCancelled { step_count } => {
            json!({"stepCount": step_count})
        }
        EventKind::StepLimitApproaching { step_count, max_steps } => json!({"stepCount": step_count, "maxSteps": max_steps}),
        EventKind::PlannedStepsChanged { steps } => json!({"count": steps.len(), "done": PlannedStep::count_done(steps)}),
        EventKind::GoalChanged(goal) => json!({
            "status": goal.status, "reason": goal.reason, "round": goal.round, "costUsd": goal.cost_usd, "elapsedMs": goal.elapsed_ms,
        }),
        EventKind::SavingChanged { saved, .. } => json!({"saved": saved}),
        EventKind::TaskCompleted { usage, cost_usd, step_count, .. } => {
            json!({"usage": usage, "costUsd": cost_usd, "stepCount": step_count})
        }
        EventKind::TaskFailed { failure, step_count } => {
            json!({"kind": failure.kind, "message": loggable_message(failure.kind, &failure.message), "stepCount": step_count})
        }
        EventKind::PromptBlocked { hook, failure, .. } => json!({"hook": hook, "kind": failure.kind}),
        EventKind::SessionPaused { failure } => {
            json!({"kind": failure.kind, "message": loggable_message(failure.kind, &failure.message)})
        }
        EventKind::SessionCompleted { task_count, total_tokens, duration_ms, .. } => {
            json!({"taskCount": task_count, "totalTokens": total_tokens, "durationMs": duration_ms})
        }
        EventKind::ModeChanged { mode } => json!({"mode": mode}),
        EventKind::SandboxInForce { tier, .. } => json!({"tier": tier}),
        EventKind::PolicyInForce { name, .. } => json!({"name": name}),
        _ => return None,
    };
    Some(payload)
}

/// Returns the data to log for an event that concerns the model or its response.
fn model_payload(kind: &EventKind) -> Option<Value> {
    let payload = match kind {
        EventKind::LlmRequestStarted { model, estimated_input_tokens } => {
            json!({"model": model, "estimatedInputTokens": estimated_input_tokens})
        }
        EventKind::LlmRequestCompleted { .. } | EventKind::BudgetApproaching { .. } => full_payload(kind),
        EventKind::LlmRetry(FailedRequest {
            attempt,
            max_attempts,
            delay_ms,
            asked_ms,
            kind,
            message,
            usage,
            cost_usd,
            estimated,
            request_id,
        }) => json!({
            "attempt": attempt, "maxAttempts": max_attempts, "delayMs": delay_ms, "askedMs": asked_ms, "kind": kind, "message": shorten(message), "usage": usage,
            "costUsd": cost_usd, "estimated": estimated, "requestId": request_id,
        }),
        EventKind::TextChunk { text }
        | EventKind::ReasoningChunk { text }
        | EventKind::Steered { text }
        | EventKind::DraftRestored { text } => {
            json!({"bytes": text.len()})
        }
        EventKind::ModelChanged { facts, effort, .. } => json!({"model": facts.name, "effort": effort}),
        _ => return None,
    };
    Some(payload)
}

/// Returns the data to log for an event that concerns a tool call.
fn call_payload(kind: &EventKind) -> Option<Value> {
    let payload = match kind {
        EventKind::ToolOutputChunk { tool_call_id, text } => json!({"toolCallId": tool_call_id, "bytes": text.len()}),
        EventKind::EffectsProgress { .. } => full_payload(kind),
        EventKind::ToolCallProgress { tool_name, bytes } => json!({"toolName": tool_name, "bytes": bytes}),
        EventKind::ToolRequested { tool_call_id, tool_name, capability, .. } => {
            json!({"toolCallId": tool_call_id, "toolName": tool_name, "capability": capability})
        }
        EventKind::ApprovalRequested(approval) => json!({
            "approvalId": approval.approval_id, "toolCallId": approval.tool_call_id, "toolName": approval.tool_name, "riskLevel": approval.risk_level,
        }),
        EventKind::ApprovalResolved { approval_id, tool_call_id, decision, latency_ms } => {
            let decision =
                serde_json::to_value(decision).ok().and_then(|mut decision| decision.get_mut("decision").map(Value::take));
            json!({"approvalId": approval_id, "toolCallId": tool_call_id, "decision": decision, "latencyMs": latency_ms})
        }
        EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated } => {
            json!({"approvalId": approval_id, "toolCallId": tool_call_id, "outdated": outdated})
        }
        EventKind::ApprovalTimeout { approval_id, tool_call_id } => {
            json!({"approvalId": approval_id, "toolCallId": tool_call_id})
        }
        EventKind::PreviewStarted { tool_call_id, .. } | EventKind::ToolStarted { tool_call_id, .. } => {
            json!({"toolCallId": tool_call_id})
        }
        EventKind::ToolInterrupted { tool_call_id, tool_name, .. } => json!({"toolCallId": tool_call_id, "toolName": tool_name}),
        EventKind::ToolCompleted { tool_call_id, tool_name, status, latency_ms, output_text, error, .. } => json!({
            "toolCallId": tool_call_id, "toolName": tool_name, "status": status, "latencyMs": latency_ms, "outputBytes": output_text.len(),
            "error": error.as_ref().map(|error| error.code),
        }),
        EventKind::OwnCommandStarted { tool_call_id, shared, .. } | EventKind::OwnCommandEnded { tool_call_id, shared } => {
            json!({"toolCallId": tool_call_id, "shared": shared})
        }
        _ => return None,
    };
    Some(payload)
}

/// Returns the data to log for an event that concerns the conversation.
fn context_payload(kind: &EventKind) -> Option<Value> {
    let payload = match kind {
        EventKind::CompactionStarted { trigger, messages, tokens } => {
            json!({"trigger": trigger, "messages": messages, "tokens": tokens})
        }
        EventKind::ContextCompacted(compaction) => json!({
            "trigger": compaction.trigger, "summarised": compaction.summarised, "kept": compaction.kept, "tokensBefore": compaction.tokens_before,
            "tokensAfter": compaction.tokens_after,
        }),
        EventKind::CompactionUndone { tokens } => json!({"tokens": tokens}),
        EventKind::ContextTruncated { removed } => json!({"removed": removed}),
        EventKind::Rewound(done) => {
            json!({"scope": done.scope, "restored": done.restored, "kept": done.kept.len(), "messages": done.messages})
        }
        _ => return None,
    };
    Some(payload)
}

/// Returns the data to log for an event that concerns MCP servers.
fn server_payload(kind: &EventKind) -> Option<Value> {
    let payload = match kind {
        EventKind::ServersChanged { servers } => {
            let states: Vec<Value> = servers.iter().map(server_summary).collect();
            json!({"servers": states})
        }
        EventKind::ElicitationRequested(asked) => {
            json!({"elicitationId": asked.elicitation_id, "server": shorten(&asked.server)})
        }
        EventKind::ElicitationEnded { elicitation_id, outcome } => {
            json!({"elicitationId": elicitation_id, "outcome": outcome})
        }
        _ => return None,
    };
    Some(payload)
}

/// Returns a server's name and state without the error text that the server supplied.
fn server_summary(server: &ServerStatus) -> Value {
    let state = serde_json::to_value(&server.state).ok().and_then(|mut state| state.get_mut("state").map(Value::take));
    json!({"name": shorten(&server.name), "state": state, "tools": server.tools})
}

fn full_payload(kind: &EventKind) -> Value {
    serde_json::to_value(kind).ok().and_then(|mut kind| kind.get_mut("payload").map(Value::take)).unwrap_or_default()
}

/// Returns the error message, or `None` if the provider may be quoting the request in it.
fn loggable_message(kind: FailureKind, message: &str) -> Option<&str> {
    (!matches!(kind, FailureKind::InvalidRequest | FailureKind::GuardrailBlocked)).then(|| shorten(message))
}

fn shorten(message: &str) -> &str {
    &message[..cut_position_before(message, MESSAGE_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CallArguments, CallId, Failure, ToolStatus, Usage};

    const SAID: &str = "the very words of somebody";

    fn logged(kind: EventKind) -> Value {
        let event = Event {
            workspace_id: WorkspaceId::new("w"),
            session_id: SessionId::new("s"),
            task_id: Some(TaskId::new("t")),
            step_id: Some(StepId::new("p")),
            timestamp: Timestamp::UNIX_EPOCH,
            kind,
        };
        let line = line(&event, "INFO");
        assert!(!line.contains(SAID) && !line.contains('\n'), "{line}");
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn log_lines_contain_ids_and_metrics_but_no_conversation_text() {
        let tool = logged(EventKind::ToolCompleted {
            tool_call_id: CallId::new("c1"),
            tool_name: "RunCommand".to_owned(),
            status: ToolStatus::Succeeded,
            latency_ms: 7,
            output_text: SAID.to_owned(),
            error: None,
            proposal: None,
            redactions: Vec::new(),
            artifact_uris: Vec::new(),
            ended: None,
        });
        let ids: Vec<_> = ["workspaceId", "sessionId", "taskId", "stepId"].iter().map(|id| tool[id].as_str().unwrap()).collect();
        assert_eq!(ids, ["w", "s", "t", "p"]);
        assert_eq!(tool["eventType"], "tool_completed");
        assert_eq!((&tool["payload"]["latencyMs"], &tool["payload"]["outputBytes"]), (&7.into(), &SAID.len().into()));
        let answered = logged(EventKind::LlmRequestCompleted {
            model: "m".to_owned(),
            usage: Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() },
            latency_ms: 9,
            stop_reason: crate::protocol::StopReason::EndTurn,
            cost_usd: Some(0.5),
            session_cost_usd: None,
            estimated: false,
        });
        assert_eq!((&answered["payload"]["inputTokens"], &answered["payload"]["costUsd"]), (&5.into(), &0.5.into()));
        for kind in [
            EventKind::TextChunk { text: SAID.to_owned() },
            EventKind::TaskStarted { prompt: SAID.to_owned(), max_steps: 1 },
            EventKind::Steered { text: SAID.to_owned() },
            EventKind::notice(SAID),
            EventKind::TaskFailed { failure: Failure::new(FailureKind::InvalidRequest, SAID, ""), step_count: 1 },
            EventKind::ToolRequested {
                tool_call_id: CallId::new("c"),
                tool_name: "ReadFile".to_owned(),
                capability: None,
                arguments: CallArguments::Malformed(SAID.to_owned()),
                summary: SAID.to_owned(),
            },
        ] {
            logged(kind);
        }
        let failed = logged(EventKind::SessionPaused { failure: Failure::new(FailureKind::Network, "no route", "wait") });
        assert_eq!(failed["payload"]["message"], "no route");
    }
}
