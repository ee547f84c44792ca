//! The events a journal tells of, for a front end that was not there.

use crate::ports::{Record, TaskEnd};
use crate::protocol::{Event, EventKind, Part, SessionId, StepId, TaskId, WorkspaceId};
use jiff::Timestamp;
use std::collections::HashMap;

/// Turns records back into the events that a front end shows; questions that are still open come from the running session.
pub fn replay(records: &[Record], workspace: &WorkspaceId, session: &SessionId) -> Vec<Event> {
    let mut replay = Replay {
        events: Vec::new(),
        workspace,
        session,
        task: None,
        step: None,
        at: Timestamp::UNIX_EPOCH,
        partial: String::new(),
        changes: HashMap::new(),
    };
    for record in records {
        replay.record(record);
    }
    replay.discard("aye ended here");
    replay.events
}

struct Replay<'a> {
    events: Vec<Event>,
    workspace: &'a WorkspaceId,
    session: &'a SessionId,
    task: Option<TaskId>,
    step: Option<StepId>,
    at: Timestamp,
    /// Text of an answer whose end did not come yet.
    partial: String,
    /// What each call was about to change.
    changes: HashMap<crate::protocol::CallId, crate::protocol::Proposal>,
}

impl Replay<'_> {
    fn tell(&mut self, kind: EventKind) {
        self.events.push(Event {
            workspace_id: self.workspace.clone(),
            session_id: self.session.clone(),
            task_id: self.task.clone(),
            step_id: self.step.clone(),
            timestamp: self.at,
            kind,
        });
    }

    /// Shows a partial answer that does not count, marked so.
    fn discard(&mut self, reason: &str) {
        if !self.partial.is_empty() {
            let text = std::mem::take(&mut self.partial);
            self.tell(EventKind::TextChunk { text });
            self.tell(EventKind::AnswerDiscarded { reason: reason.to_owned() });
        }
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::TaskStarted { prompt, max_steps } => {
                self.discard("aye ended here");
                self.at = prompt.timestamp;
                self.task = Some(prompt.task_id.clone());
                self.step = None;
                self.tell(EventKind::TaskStarted { prompt: prompt.text(), max_steps: *max_steps });
            }
            Record::StepStarted { step_id, .. } => {
                self.discard("aye ended here");
                self.step = Some(step_id.clone());
            }
            Record::PartialAnswer { text, .. } => self.partial.push_str(text),
            Record::AnswerDiscarded { reason, .. } => self.discard(reason),
            Record::Answer { message, usage, stop_reason, latency_ms, model, cost_usd } => {
                self.partial.clear();
                self.at = message.timestamp;
                for part in &message.content {
                    match part {
                        Part::Text { text } => self.tell(EventKind::TextChunk { text: text.clone() }),
                        Part::Reasoning { text, .. } => self.tell(EventKind::ReasoningChunk { text: text.clone() }),
                        Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => {}
                    }
                }
                self.tell(EventKind::LlmRequestCompleted {
                    model: model.clone(),
                    usage: *usage,
                    latency_ms: *latency_ms,
                    stop_reason: *stop_reason,
                    cost_usd: *cost_usd,
                    session_cost_usd: None,
                });
            }
            Record::Intent { call, summary, actions, proposal, changes, .. } => {
                if let (true, Some(proposal)) = (*changes, proposal) {
                    self.changes.insert(call.tool_call_id.clone(), proposal.clone());
                }
                self.tell(EventKind::ToolRequested {
                    tool_call_id: call.tool_call_id.clone(),
                    tool_name: call.tool_name.clone(),
                    capability: actions.first().map(|action| action.capability().to_owned()),
                    arguments: call.arguments.clone(),
                    summary: summary.clone(),
                });
            }
            // What is asked about now is what it would change now.
            Record::ApprovalRequested { approval } => {
                self.changes.remove(&approval.tool_call_id);
                if approval.proposal != crate::protocol::Proposal::default() {
                    self.changes.insert(approval.tool_call_id.clone(), approval.proposal.clone());
                }
            }
            Record::Previewed { tool_call_id, proposal: Some(proposal) } => {
                self.changes.insert(tool_call_id.clone(), proposal.clone());
            }
            Record::PreviewDropped { tool_call_id } => {
                self.changes.remove(tool_call_id);
            }
            Record::Started { tool_call_id, rule } => {
                self.tell(EventKind::ToolStarted { tool_call_id: tool_call_id.clone(), rule: rule.clone() });
            }
            Record::Finished { result, latency_ms } => {
                let proposal = self.changes.remove(&result.tool_call_id).filter(|_| result.error.is_none());
                self.tell(EventKind::ToolCompleted {
                    tool_call_id: result.tool_call_id.clone(),
                    tool_name: result.tool_name.clone(),
                    status: result.status,
                    latency_ms: *latency_ms,
                    output_text: result.output_text.clone(),
                    error: result.error.clone(),
                    proposal,
                    redactions: result.redactions.clone(),
                    artifact_uris: result.artifact_uris.clone(),
                });
            }
            Record::TaskEnded { step_count, end, .. } => {
                self.discard("aye ended here");
                self.tell(match end {
                    TaskEnd::Completed => EventKind::TaskCompleted {
                        text: String::new(),
                        usage: crate::protocol::Usage::default(),
                        cost_usd: None,
                        step_count: *step_count,
                    },
                    TaskEnd::Failed { failure } => EventKind::TaskFailed { failure: failure.clone(), step_count: *step_count },
                    TaskEnd::Cancelled => EventKind::TaskCancelled { step_count: *step_count },
                });
            }
            Record::Steered { message } => self.tell(EventKind::Steered { text: message.text() }),
            Record::Queue { .. }
            | Record::PreviewStarted { .. }
            | Record::Previewed { proposal: None, .. }
            | Record::KeptFrom { .. }
            | Record::Decided { .. }
            | Record::RuleSaved { .. }
            | Record::Refused { .. }
            | Record::RuleRemoved { .. }
            | Record::Resolved { .. }
            | Record::StepCompleted { .. }
            | Record::PolicyInForce { .. }
            | Record::Stopping { .. }
            | Record::Wasted { .. }
            | Record::Compacted { .. }
            | Record::CompactionUndone
            | Record::ModelChosen { .. }
            | Record::BudgetSet { .. }
            | Record::Paused { .. }
            | Record::Continued
            | Record::Unreadable => {}
        }
    }
}
