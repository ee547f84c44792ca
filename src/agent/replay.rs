//! The events a journal tells of, for a front end that was not there.

use crate::ports::{Record, TaskEnd};
use crate::protocol::{
    Arguments, Effort, Event, EventKind, HistorySum, Part, SessionId, StepId, StopReason, TaskId, ToolUses, Usage, WorkspaceId,
};
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
        own: None,
        summaries: Vec::new(),
        model: String::new(),
        chosen: None,
    };
    for record in records {
        replay.record(record);
    }
    replay.discard("aye ended here");
    replay.events
}

/// What all of it came to: what the events of `replay` would add up to.
pub fn sum(records: &[Record]) -> HistorySum {
    let mut sum = HistorySum::default();
    let mut uses = ToolUses::default();
    for record in records {
        match record {
            Record::TaskStarted { .. } => {
                (sum.task_usage, sum.task_cost_usd, sum.task_estimated) = (Usage::default(), None, false);
            }
            Record::Answer { usage, cost_usd, estimated, .. }
            | Record::Wasted { usage, cost_usd, estimated }
            | Record::Sampled { usage, cost_usd, estimated, .. }
            | Record::Compacted { usage, cost_usd, estimated, .. } => {
                sum.usage += *usage;
                sum.task_usage += *usage;
                for (total, cost) in [&mut sum.cost_usd, &mut sum.task_cost_usd].into_iter().zip([cost_usd; 2]) {
                    if let Some(cost) = cost {
                        *total.get_or_insert(0.0) += cost;
                    }
                }
                sum.estimated |= estimated;
                sum.task_estimated |= estimated;
            }
            Record::Finished { result, latency_ms } => uses.note(&result.tool_name, result.status, *latency_ms),
            _ => {}
        }
    }
    sum.tools = uses.list();
    sum
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
    /// Tokens before each compaction that was not taken back.
    summaries: Vec<u64>,
    /// The model that was asked last, as far as the journal tells.
    model: String,
    /// What the person chose last.
    chosen: Option<(String, Option<Effort>)>,
    /// What each call was about to change.
    changes: HashMap<crate::protocol::CallId, crate::protocol::Proposal>,
    /// The command of the person's own that has not ended.
    own: Option<crate::protocol::CallId>,
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

    /// A request that left no answer in the thread, for what it used.
    fn asked(&mut self, stop_reason: StopReason, usage: Usage, cost_usd: Option<f64>, estimated: bool) {
        let model = self.model.clone();
        let session_cost_usd = None;
        self.tell(EventKind::LlmRequestCompleted {
            model,
            usage,
            latency_ms: 0,
            stop_reason,
            cost_usd,
            session_cost_usd,
            estimated,
        });
    }

    /// What is known of the model now was not written down; that it was chosen was.
    fn chosen(&mut self, model: &str, effort: Option<Effort>) {
        let (before, effort_before) = self.chosen.take().unzip();
        let is_new = before.as_deref() != Some(model);
        let new_effort = effort_before.flatten() != effort;
        let effort_words = format!("effort {}", effort.map_or("as the model has it by itself", Effort::as_str));
        let words = [is_new.then(|| format!("model {model}")), new_effort.then_some(effort_words)];
        let message = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if !message.is_empty() {
            self.tell(EventKind::Notice { message });
        }
        model.clone_into(&mut self.model);
        self.chosen = Some((model.to_owned(), effort));
    }

    fn record(&mut self, record: &Record) {
        match record {
            Record::TaskStarted { prompt, max_steps } => {
                self.discard("aye ended here");
                self.at = prompt.timestamp;
                self.task = Some(prompt.task_id.clone());
                self.step = None;
                self.tell(EventKind::TaskStarted { prompt: prompt.typed().to_owned(), max_steps: *max_steps });
            }
            Record::StepStarted { task_id, step_id, .. } => {
                self.discard("aye ended here");
                // A part of a session may begin here.
                self.task = Some(task_id.clone());
                self.step = Some(step_id.clone());
            }
            Record::PartialAnswer { text, .. } => self.partial.push_str(text),
            Record::AnswerDiscarded { reason, .. } => self.discard(reason),
            Record::Answer { message, usage, stop_reason, latency_ms, model, cost_usd, estimated } => {
                self.partial.clear();
                self.at = message.timestamp;
                self.model.clone_from(model);
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
                    estimated: *estimated,
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
            Record::Started { tool_call_id, rule, edited, .. } => {
                let summary = edited.as_ref().map(|edited| edited.summary.clone());
                self.tell(EventKind::ToolStarted { tool_call_id: tool_call_id.clone(), rule: rule.clone(), summary });
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
                        usage: Usage::default(),
                        cost_usd: None,
                        step_count: *step_count,
                    },
                    TaskEnd::Failed { failure } => EventKind::TaskFailed { failure: failure.clone(), step_count: *step_count },
                    TaskEnd::Cancelled => EventKind::TaskCancelled { step_count: *step_count },
                });
            }
            Record::Steered { message } => self.tell(EventKind::Steered { text: message.text() }),
            Record::Wasted { usage, cost_usd, estimated } => self.asked(StopReason::Error, *usage, *cost_usd, *estimated),
            Record::Sampled { usage, cost_usd, estimated, .. } => self.asked(StopReason::EndTurn, *usage, *cost_usd, *estimated),
            Record::ModelChosen { model, effort } => self.chosen(model, *effort),
            Record::Compacted { compaction, usage, cost_usd, estimated, .. } => {
                self.asked(StopReason::EndTurn, *usage, *cost_usd, *estimated);
                self.summaries.push(compaction.tokens_before);
                self.tell(EventKind::ContextCompacted(compaction.clone()));
            }
            Record::Truncated { removed, .. } => self.tell(EventKind::ContextTruncated { removed: *removed }),
            Record::CompactionUndone => {
                if let Some(tokens) = self.summaries.pop() {
                    self.tell(EventKind::CompactionUndone { tokens });
                }
            }
            Record::OwnStarted { call, shared, .. } => {
                self.discard("aye ended here");
                (self.task, self.step) = (None, None);
                let line = match &call.arguments {
                    Arguments::Object(object) => object.get("command").and_then(|line| line.as_str()).unwrap_or_default(),
                    Arguments::Malformed(_) => "",
                };
                let (tool_call_id, line) = (call.tool_call_id.clone(), line.to_owned());
                self.own = Some(tool_call_id.clone());
                self.tell(EventKind::OwnCommandStarted { tool_call_id, line, shared: *shared });
            }
            Record::OwnEnded { said, .. } => {
                if let Some(tool_call_id) = self.own.take() {
                    self.tell(EventKind::OwnCommandEnded { tool_call_id, shared: said.is_some() });
                }
            }
            Record::Rewound { rewound, .. } => self.tell(EventKind::Rewound(rewound.clone())),
            Record::Queue { .. }
            | Record::RewindStarted { .. }
            | Record::CompactionStarted { .. }
            | Record::CompactionGivenUp
            | Record::PreviewStarted { .. }
            | Record::Previewed { proposal: None, .. }
            | Record::KeptFrom { .. }
            | Record::Decided { .. }
            | Record::RuleSaved { .. }
            | Record::Refused { .. }
            | Record::RuleRemoved { .. }
            | Record::Resolved { .. }
            | Record::Renewed { .. }
            | Record::StepCompleted { .. }
            | Record::PolicyInForce { .. }
            | Record::Stopping { .. }
            | Record::BudgetSet { .. }
            | Record::Paused { .. }
            | Record::Continued
            | Record::Imported { .. }
            | Record::Unreadable => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Compaction, CompactionTrigger, Message, MessageId, Role};

    #[test]
    fn what_failed_requests_and_summaries_cost_and_which_model_was_chosen_is_told_again() {
        let usage = Usage { input_tokens: 1_000, output_tokens: 20, ..Usage::default() };
        let compaction = Compaction {
            trigger: CompactionTrigger::Asked,
            focus: None,
            summary: "all of it".to_owned(),
            summarised: 3,
            kept: 1,
            tokens_before: 900,
            tokens_after: 100,
        };
        let task_id = TaskId::new("task_1");
        let message = Message {
            message_id: MessageId::new("msg_1"),
            role: Role::User,
            content: Vec::new(),
            token_count: 1,
            task_id,
            step_id: None,
            timestamp: Timestamp::UNIX_EPOCH,
        };
        let chosen = |effort| Record::ModelChosen { model: "acme/two".to_owned(), effort };
        let records = [
            Record::Wasted { usage, cost_usd: Some(0.25), estimated: true },
            chosen(None),
            chosen(Some(Effort::High)),
            Record::Compacted {
                until: MessageId::new("msg_0"),
                message,
                compaction,
                verbatim: Vec::new(),
                usage,
                cost_usd: Some(0.5),
                estimated: false,
            },
        ];
        let told = replay(&records, &WorkspaceId::new("w"), &SessionId::new("s"));
        let costs: Vec<_> = told
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::LlmRequestCompleted { cost_usd, estimated, .. } => Some((*cost_usd, *estimated)),
                _ => None,
            })
            .collect();
        assert_eq!(costs, [(Some(0.25), true), (Some(0.5), false)]);
        let notices: Vec<_> = told
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Notice { message } => Some(message.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(notices, ["model acme/two", "effort high"]);
        assert!(matches!(told.last().map(|event| &event.kind), Some(EventKind::ContextCompacted(_))));
    }
}
