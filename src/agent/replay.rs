//! Replays a journal as events for a front end that was not connected.

use crate::ports::{GoalChange, Record, TaskEnd};
use crate::protocol::{CallId, Effort, Event, EventKind, Part, SessionId, StepId, StopReason, TaskId, Usage, WorkspaceId};
use crate::session::{CallChange, Change, Expense, ModelChoice, Payer, SessionState};
use jiff::Timestamp;

/// Converts records back into events for a front end. Pending approvals come from the running session instead.
pub(crate) fn replay(records: &[Record], workspace: &WorkspaceId, session: &SessionId) -> Vec<Event> {
    let (mut replay, mut state) = (Replay::new(workspace, session), SessionState::default());
    for record in records {
        let applied = state.apply(record);
        if let Some((text, reason)) = applied.interrupted {
            replay.show_interrupted(text, reason);
        }
        replay.change(applied.change, &state);
    }
    if let Some((text, reason)) = state.interrupted_answer() {
        replay.show_interrupted(text.to_owned(), reason);
    }
    replay.events
}

struct Replay<'a> {
    events: Vec<Event>,
    workspace: &'a WorkspaceId,
    session: &'a SessionId,
    task: Option<TaskId>,
    step: Option<StepId>,
    at: Timestamp,
}

impl<'a> Replay<'a> {
    fn new(workspace: &'a WorkspaceId, session: &'a SessionId) -> Self {
        Self { events: Vec::new(), workspace, session, task: None, step: None, at: Timestamp::UNIX_EPOCH }
    }

    fn emit(&mut self, kind: EventKind) {
        self.events.push(Event {
            workspace_id: self.workspace.clone(),
            session_id: self.session.clone(),
            task_id: self.task.clone(),
            step_id: self.step.clone(),
            timestamp: self.at,
            kind,
        });
    }

    /// Emits the text of an interrupted response, marked as discarded.
    fn show_interrupted(&mut self, text: String, reason: &str) {
        self.emit(EventKind::TextChunk { text });
        self.emit(EventKind::AnswerDiscarded { reason: reason.to_owned() });
    }

    fn request(&mut self, model: &str, stop_reason: StopReason, latency_ms: u64, spent: Expense) {
        let Expense { usage, cost_usd, estimated } = spent;
        let (model, session_cost_usd) = (model.to_owned(), None);
        self.emit(EventKind::LlmRequestCompleted {
            model,
            usage,
            latency_ms,
            stop_reason,
            cost_usd,
            session_cost_usd,
            estimated,
        });
    }

    /// Emits a notice about a model choice. The journal records only the choice and no other facts about the model.
    fn show_model_choice(&mut self, choice: &ModelChoice, before: Option<&ModelChoice>) {
        let is_new = before.is_none_or(|before| before.model != choice.model);
        let new_effort = before.and_then(|before| before.effort) != choice.effort;
        let effort = choice.effort.map_or("the model's default", Effort::as_str);
        let words = [is_new.then(|| format!("model {}", choice.model)), new_effort.then(|| format!("effort {effort}"))];
        let message = words.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if !message.is_empty() {
            self.emit(EventKind::notice(message));
        }
    }

    fn goal(&mut self, change: &GoalChange, state: &SessionState) {
        if let Some(goal) = &state.goal {
            let message = change.explanation().map(str::to_owned);
            self.emit(EventKind::GoalChanged(goal.state(None, goal.elapsed_ms, message)));
        }
    }

    fn change(&mut self, change: Change<'_>, state: &SessionState) {
        match change {
            Change::TaskStarted { prompt, max_steps } => {
                self.at = prompt.timestamp;
                (self.task, self.step) = (Some(prompt.task_id.clone()), None);
                self.emit(EventKind::TaskStarted { prompt: prompt.typed_text().to_owned(), max_steps });
            }
            // If only part of a session is replayed, that part may begin here.
            Change::StepStarted { task_id, step_id, .. } => {
                (self.task, self.step) = (Some(task_id.clone()), Some(step_id.clone()));
            }
            Change::Answered { message, stop_reason, latency_ms, model, spent } => {
                self.at = message.timestamp;
                for part in &message.content {
                    match part {
                        Part::Text { text } => self.emit(EventKind::TextChunk { text: text.clone() }),
                        Part::Reasoning { text, .. } => self.emit(EventKind::ReasoningChunk { text: text.clone() }),
                        Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => {}
                    }
                }
                self.request(model, stop_reason, latency_ms, spent);
            }
            Change::Call { tool_call_id, change } => self.call(tool_call_id, change),
            Change::TaskEnded { end, step_count } => self.emit(task_end(end, step_count)),
            Change::Steered { message } => self.emit(EventKind::Steered { text: message.text() }),
            Change::Spent { spent: Expense { usage, cost_usd, estimated }, payer: Payer::Review } => {
                self.emit(EventKind::ReviewSpent { usage, cost_usd, session_cost_usd: None, estimated });
            }
            Change::Spent { spent, payer } => {
                let stop_reason = match payer {
                    Payer::FailedRequest => StopReason::Error,
                    Payer::Server(_) | Payer::Review => StopReason::EndTurn,
                };
                self.request(&state.asked_model, stop_reason, 0, spent);
            }
            Change::ModelChosen { choice, before } => self.show_model_choice(&choice, before.as_ref()),
            Change::Compacted { compaction, spent, .. } => {
                self.request(&state.asked_model, StopReason::EndTurn, 0, spent);
                self.emit(EventKind::ContextCompacted(compaction.clone()));
            }
            Change::Truncated { removed, .. } => self.emit(EventKind::ContextTruncated { removed }),
            Change::CompactionUndone { tokens: Some(tokens) } => self.emit(EventKind::CompactionUndone { tokens }),
            Change::UserCommandStarted { call, line, shared, check, .. } => {
                (self.task, self.step) = (None, None);
                let (tool_call_id, line) = (call.tool_call_id.clone(), line.to_owned());
                self.emit(EventKind::OwnCommandStarted { tool_call_id, line, shared, check });
            }
            Change::UserCommandEnded { tool_call_id: Some(tool_call_id), shared } => {
                self.emit(EventKind::OwnCommandEnded { tool_call_id, shared: shared.is_some() });
            }
            Change::Rewound { rewound, .. } => self.emit(EventKind::Rewound(rewound.clone())),
            Change::GoalChanged { change } => self.goal(change, state),
            Change::CompactionUndone { tokens: None }
            | Change::UserCommandEnded { tool_call_id: None, .. }
            | Change::None
            | Change::Repeated
            | Change::StepCompleted { .. }
            | Change::Stopping
            | Change::Paused { .. }
            | Change::Continued
            | Change::BudgetSet { .. }
            | Change::PriceAssumed { .. }
            | Change::QueueChanged { .. }
            | Change::RewindStarted { .. }
            | Change::PolicyChanged { .. }
            | Change::Imported { .. }
            | Change::Registered { .. }
            | Change::Unreadable => {}
        }
    }

    fn call(&mut self, id: &CallId, change: CallChange<'_>) {
        match change {
            CallChange::Planned { call, summary, actions, .. } => self.emit(EventKind::ToolRequested {
                tool_call_id: id.clone(),
                tool_name: call.tool_name.clone(),
                capability: actions.first().map(|action| action.capability().to_owned()),
                arguments: call.arguments.clone(),
                summary: summary.to_owned(),
            }),
            CallChange::Started { rule, edited } => {
                let summary = edited.map(|edited| edited.summary.clone());
                let (tool_call_id, rule) = (id.clone(), rule.to_owned());
                self.emit(EventKind::ToolStarted { tool_call_id, rule, summary, effects: None, note: None });
            }
            CallChange::Finished { result, latency_ms, proposal } => self.emit(EventKind::ToolCompleted {
                tool_call_id: id.clone(),
                tool_name: result.tool_name.clone(),
                status: result.status,
                latency_ms,
                output_text: result.output_text.clone(),
                error: result.error.clone(),
                proposal,
                redactions: result.redactions.clone(),
                artifact_uris: result.artifact_uris.clone(),
                ended: result.ended.clone(),
            }),
            CallChange::Hooked { .. }
            | CallChange::Asked { .. }
            | CallChange::Decided { .. }
            | CallChange::Refused { .. }
            | CallChange::Renewed
            | CallChange::Conflicted
            | CallChange::PreviewStarted
            | CallChange::LayerEnded
            | CallChange::Previewed { .. }
            | CallChange::PreviewDropped
            | CallChange::Blocked
            | CallChange::Resolved { .. } => {}
        }
    }
}

fn task_end(end: &TaskEnd, step_count: u32) -> EventKind {
    match end {
        TaskEnd::Completed => {
            EventKind::TaskCompleted { text: String::new(), usage: Usage::default(), cost_usd: None, step_count }
        }
        TaskEnd::Failed { failure } => EventKind::TaskFailed { failure: failure.clone(), step_count },
        TaskEnd::Cancelled => EventKind::TaskCancelled { step_count },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Compaction, CompactionTrigger, Message, MessageId, Role};

    #[test]
    fn replay_reports_costs_of_failed_requests_and_summaries_and_the_chosen_model() {
        let usage = Usage { input_tokens: 1_000, output_tokens: 20, ..Usage::default() };
        let compaction = Compaction {
            trigger: CompactionTrigger::Asked,
            focus: None,
            summary: "all of it".to_owned(),
            model: None,
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
            Record::Wasted { usage, cost_usd: Some(0.25), estimated: true, model: None },
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
                EventKind::Notice { message, .. } => Some(message.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(notices, ["model acme/two", "effort high"]);
        assert!(matches!(told.last().map(|event| &event.kind), Some(EventKind::ContextCompacted(_))));
    }
}
