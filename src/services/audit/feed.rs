//! Conversion of session changes and decisions to audit records.

use crate::ports::TaskEnd;
use crate::protocol::{CallDenial, CallId, Decision, StepId, TaskId, ToolStatus};
use crate::services::SessionFacts;
use crate::services::otlp::{Attributes, add_identity, nanos};
use crate::services::redaction::{RedactText, redacted_json};
use crate::session::{CallChange, Change};
use crate::store::{LoggedDecision, OutboxEntry, OutboxFeed, OutboxSink};
use serde_json::json;
use std::sync::{Mutex, PoisonError};

/// Kind of an outbox row that contains a log record.
const RECORD: &str = "record";

pub(in super::super) struct AuditFeed {
    facts: SessionFacts,
    redact: RedactText,
    /// Whether to include prompts, responses, arguments and results.
    content: bool,
    position: Mutex<Position>,
}

/// Current task and step.
#[derive(Default, Clone)]
struct Position {
    task_id: Option<TaskId>,
    step_id: Option<StepId>,
}

/// Log record that is being built.
struct Draft {
    event: &'static str,
    body: String,
    attributes: Attributes,
}

impl Draft {
    fn new(event: &'static str, body: impl Into<String>) -> Self {
        Self { event, body: body.into(), attributes: Attributes::default() }
    }
}

impl AuditFeed {
    pub(in super::super) fn new(facts: SessionFacts, redact: RedactText, content: bool) -> Self {
        Self { facts, redact, content, position: Mutex::default() }
    }

    fn entry(&self, draft: Draft, position: &Position, now: jiff::Timestamp) -> OutboxEntry {
        let Draft { event, body, mut attributes } = draft;
        attributes.text("session.id", Some(self.facts.session_id.as_str()).filter(|id| !id.is_empty()));
        attributes.text("aye.workspace.id", Some(self.facts.workspace_id.as_str()));
        attributes.text("aye.workspace.path", Some(&(self.redact)(&self.facts.workspace)));
        if let Some(session) = &self.facts.service_session {
            add_identity(&mut attributes, session);
        }
        attributes.text("gen_ai.agent.name", self.facts.agent.as_deref());
        attributes.text("aye.task.id", position.task_id.as_ref().map(TaskId::as_str));
        attributes.text("aye.step.id", position.step_id.as_ref().map(StepId::as_str));
        let record = json!({
            "timeUnixNano": nanos(now), "observedTimeUnixNano": nanos(now), "severityNumber": 9, "severityText": "INFO",
            "eventName": event, "body": {"stringValue": (self.redact)(&body)}, "attributes": attributes.into_value(),
        });
        OutboxEntry { sink: OutboxSink::Audit, kind: RECORD, body: record.to_string().into_bytes() }
    }

    /// Adds `content` to the record as a redacted attribute, if sending content is enabled.
    fn add_content(&self, draft: &mut Draft, key: &str, content: impl FnOnce() -> String) {
        if self.content {
            draft.attributes.text(key, Some(&(self.redact)(&content())));
        }
    }

    fn draft(&self, change: &Change<'_>) -> Option<Draft> {
        Some(match change {
            Change::TaskStarted { prompt, .. } => {
                let mut draft = Draft::new("aye.task.started", "the user started a task");
                self.add_content(&mut draft, "aye.prompt", || prompt.text());
                draft
            }
            Change::Steered { message } => {
                let mut draft = Draft::new("aye.task.steered", "the user sent a message to the running task");
                self.add_content(&mut draft, "aye.prompt", || message.text());
                draft
            }
            Change::Answered { message, model, spent, .. } => {
                let mut draft = Draft::new("aye.model.response", format!("response of {model}"));
                draft.attributes.text("gen_ai.request.model", Some(model));
                draft.attributes.number("gen_ai.usage.input_tokens", Some(spent.usage.input_tokens));
                draft.attributes.number("gen_ai.usage.output_tokens", Some(spent.usage.output_tokens));
                self.add_content(&mut draft, "aye.response", || message.text());
                draft
            }
            Change::TaskEnded { end, .. } => {
                let (status, failure) = match end {
                    TaskEnd::Completed => ("completed", None),
                    TaskEnd::Failed { failure } => ("failed", Some(failure.message.clone())),
                    TaskEnd::Cancelled => ("cancelled", None),
                };
                let mut draft = Draft::new("aye.task.ended", format!("the task is {status}"));
                draft.attributes.text("aye.task.status", Some(status));
                draft.attributes.text("error.message", failure.map(|message| (self.redact)(&message)).as_deref());
                draft
            }
            Change::ModelChosen { choice, .. } => {
                let mut draft = Draft::new("aye.model.chosen", "the model changed");
                draft.attributes.text("gen_ai.request.model", Some(&choice.model));
                draft
            }
            Change::PolicyChanged { mode } => {
                let mut draft = Draft::new("aye.policy.changed", "the policy in effect changed");
                draft.attributes.text("aye.mode", mode.map(|mode| mode.as_str()));
                draft
            }
            Change::Registered { session } => {
                let mut draft = Draft::new("aye.session.registered", "the session service accepted the session");
                draft.attributes.text("aye.service.policy_bundle.version", session.policy_bundle_version.as_deref());
                let flags = Some(&session.feature_flags).filter(|flags| !flags.is_empty());
                let flags = flags.map(|flags| redacted_json(flags, &self.redact));
                draft.attributes.text("aye.service.feature_flags", flags.as_deref());
                draft
            }
            Change::Rewound { rewind_id, .. } => {
                let mut draft = Draft::new("aye.rewound", "files or the conversation were restored to an earlier state");
                draft.attributes.text("aye.rewind.id", Some(rewind_id));
                draft
            }
            Change::UserCommandStarted { call, line, check, .. } => {
                let mut draft = Draft::new("aye.user_command.started", format!("$ {line}"));
                draft.attributes.text("gen_ai.tool.call.id", Some(call.tool_call_id.as_str()));
                draft.attributes.flag("aye.is_check", *check);
                draft
            }
            Change::Call { tool_call_id, change } => self.call_draft(tool_call_id, change)?,
            _ => return None,
        })
    }

    fn call_draft(&self, id: &CallId, change: &CallChange<'_>) -> Option<Draft> {
        let mut draft = match change {
            CallChange::Planned { call, summary, .. } => {
                let mut draft = Draft::new("aye.call.planned", *summary);
                draft.attributes.text("gen_ai.tool.name", Some(&call.tool_name));
                self.add_content(&mut draft, "gen_ai.tool.call.arguments", || redacted_json(&call.arguments, &self.redact));
                draft
            }
            CallChange::Asked { approval } => {
                let mut draft = Draft::new("aye.approval.requested", approval.action_summary.clone());
                draft.attributes.text("aye.approval.id", Some(approval.approval_id.as_str()));
                draft
                    .attributes
                    .text("aye.risk", Some(if approval.critical { "critical" } else { approval.risk_level.as_str() }));
                draft.attributes.text("aye.rule", Some(&approval.rule));
                draft
            }
            CallChange::Decided { decision } => {
                let name = serde_json::to_value(decision).ok().and_then(|value| Some(value["decision"].as_str()?.to_owned()));
                let mut draft = Draft::new("aye.approval.decided", name.clone().unwrap_or_default());
                draft.attributes.text("aye.decision", name.as_deref());
                if let Decision::Denied(CallDenial { by, reason }) = decision {
                    draft.attributes.text("aye.denied_by", Some(by.as_str()));
                    let reason = reason.as_ref().map(|reason| (self.redact)(reason));
                    draft.attributes.text("aye.reason", reason.as_deref());
                }
                draft
            }
            CallChange::Started { rule, edited } => {
                let summary = edited.map(|edited| edited.summary.clone());
                let mut draft = Draft::new("aye.call.started", summary.unwrap_or_else(|| "the call started".to_owned()));
                draft.attributes.text("aye.rule", Some(rule));
                draft
            }
            CallChange::Finished { result, latency_ms, .. } => {
                let status = match result.status {
                    ToolStatus::Succeeded => "succeeded",
                    ToolStatus::Failed => "failed",
                    ToolStatus::Denied => "denied",
                };
                let mut draft = Draft::new("aye.call.finished", status);
                draft.attributes.text("gen_ai.tool.name", Some(&result.tool_name));
                draft.attributes.text("aye.call.status", Some(status));
                draft.attributes.number("aye.call.latency_ms", Some(*latency_ms));
                self.add_content(&mut draft, "gen_ai.tool.call.result", || result.output_text.clone());
                draft
            }
            CallChange::Resolved { .. } => Draft::new("aye.call.resolved", "the user resolved a call with an unknown outcome"),
            _ => return None,
        };
        draft.attributes.text("gen_ai.tool.call.id", Some(id.as_str()));
        Some(draft)
    }
}

impl OutboxFeed for AuditFeed {
    fn changes(&self, changes: &[Change<'_>], now: jiff::Timestamp) -> Vec<OutboxEntry> {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = Vec::new();
        for change in changes {
            match change {
                Change::TaskStarted { prompt, .. } => {
                    *position = Position { task_id: Some(prompt.task_id.clone()), step_id: None };
                }
                Change::StepStarted { task_id, step_id, .. } => {
                    *position = Position { task_id: Some((*task_id).clone()), step_id: Some((*step_id).clone()) };
                }
                _ => {}
            }
            entries.extend(self.draft(change).map(|draft| self.entry(draft, &position, now)));
        }
        entries
    }

    fn decision(&self, decision: &LoggedDecision) -> Vec<OutboxEntry> {
        let mut draft = Draft::new("aye.decision", decision.summary.clone());
        draft.attributes.text("gen_ai.tool.name", Some(&decision.tool_name));
        draft.attributes.text("aye.verdict", Some(&decision.verdict));
        draft.attributes.text("aye.decided_by", Some(&decision.by));
        draft
            .attributes
            .text("aye.reason", Some(&(self.redact)(&decision.reason)).filter(|reason| !reason.is_empty()).map(String::as_str));
        draft.attributes.text("aye.mode", Some(&decision.mode));
        let position = self.position.lock().unwrap_or_else(PoisonError::into_inner).clone();
        vec![self.entry(draft, &position, decision.time)]
    }
}
