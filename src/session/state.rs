//! Session state after a number of journal records.

use super::calls::OpenCalls;
use super::goal::GoalProgress;
use super::rewinds::{Prompt, PromptHistory};
use super::task::{Steps, TaskProgress, TaskStage};
use super::{
    AppliedRecord, Change, Expense, ModelChoice, OpenCall, Payer, PromptRewind, ResponseParts, SessionActivity, Tally,
    TallyCounter, TallyEntry, Totals, records,
};
use crate::ports::{Record, ServiceSession, TaskEnd};
use crate::protocol::{Action, CallId, Failure, HistorySum, Mode, PlannedStep, PolicyLayer, QueuedMessage, StepId, ToolUses};

/// Reason given for a cut-off response if no record states one.
const PROCESS_ENDED: &str = "aye exited here";

/// Actions covered by an approved plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mandate {
    /// Actions that are allowed until the task ends, to the extent that the policy lets a plan allow them.
    pub actions: Vec<Action>,
    /// Actions that the plan names but that still need approval.
    pub asks: Vec<Action>,
}

/// Session state, excluding the messages.
#[derive(Debug, Default)]
pub(crate) struct SessionState {
    /// Status set by the last record that changes it; `None` if there is no such record.
    pub status: Option<SessionActivity>,
    /// Title, taken from the first prompt or from a command that the user ran before it.
    pub title: Option<String>,
    /// Number of records applied.
    pub records: u64,
    /// Totals of the last task.
    pub task_totals: Totals,
    pub tool_uses: ToolUses,
    /// Queued messages.
    pub queue: Vec<QueuedMessage>,
    /// Steps that the model planned for the last task.
    pub planned_steps: Vec<PlannedStep>,
    /// Actions covered by the running task's approved plan.
    pub mandate: Mandate,
    /// Failure that paused the task, if it is paused.
    pub pause: Option<Failure>,
    /// Most recently set goal.
    pub goal: Option<GoalProgress>,
    /// The user's last model choice.
    pub model: Option<ModelChoice>,
    /// Model that received the last request.
    pub asked_model: String,
    /// Policy bundles most recently in effect.
    pub policy: Option<Vec<PolicyLayer>>,
    pub mode: Option<Mode>,
    /// Mode that the user last chose for the session.
    pub chosen_mode: Option<Mode>,
    pub policy_bundle_version: Option<String>,
    /// Most recent registration with a session service.
    pub service_session: Option<ServiceSession>,
    /// Tenant reported by the session service, or the tenant that an imported session had originally. The same
    /// applies to `user_id`.
    pub tenant_id: Option<String>,
    pub user_id: Option<String>,
    /// Whether a compaction has started and its outcome has not been recorded.
    pub is_compacting: bool,
    /// Whether the last task is still open or ended before it was completed.
    is_unfinished: bool,
    tally: TallyCounter,
    steps: Steps,
    calls: OpenCalls,
    rewinds: PromptHistory,
    /// Call of the command that the user is running.
    user_command: Option<CallId>,
    /// Number of tokens before each compaction that has not been undone.
    compactions: Vec<u64>,
    /// Text of the response being streamed.
    partial: String,
    /// Number of bytes of streamed text that are not yet included in a request's recorded usage.
    uncounted_bytes: usize,
    parts: ResponseParts,
    response: String,
}

impl SessionState {
    pub(crate) fn from_records<'r>(records: impl IntoIterator<Item = &'r Record>) -> Self {
        let mut state = Self::default();
        for record in records {
            state.apply(record);
        }
        state
    }

    /// Applies a record. Records must be applied in journal order.
    pub(crate) fn apply<'r>(&mut self, record: &'r Record) -> AppliedRecord<'r> {
        self.records += 1;
        if !self.tally.add(&TallyEntry::from(record)) {
            return AppliedRecord { interrupted: None, closed: Vec::new(), change: Change::Repeated };
        }
        self.is_compacting =
            matches!(record, Record::CompactionStarted { .. }) || self.is_compacting && records::may_follow_compaction(record);
        let interrupted = self.interrupt(record);
        if let Record::StepCompleted { message, .. } = record {
            self.calls.finish_all(message);
        }
        let closed = if records::closes_calls(record) { self.calls.close() } else { Vec::new() };
        self.status = records::status_after(record).or(self.status);
        if self.title.is_none() {
            self.title = records::title(record);
        }
        AppliedRecord { interrupted, closed, change: self.change(record) }
    }

    /// Returns the streamed text and the reason if this record shows that the response was cut off.
    fn interrupt<'r>(&mut self, record: &'r Record) -> Option<(String, &'r str)> {
        let reason = match record {
            Record::PartialAnswer { text, .. } => {
                self.partial.push_str(text);
                self.uncounted_bytes += text.len();
                return None;
            }
            Record::Answer { .. } => {
                self.partial.clear();
                self.uncounted_bytes = 0;
                return None;
            }
            Record::Wasted { .. } | Record::StepCompleted { .. } => {
                self.uncounted_bytes = 0;
                return None;
            }
            Record::OwnStarted { .. } => PROCESS_ENDED,
            Record::TaskStarted { .. } | Record::StepStarted { .. } | Record::TaskEnded { .. } => {
                self.uncounted_bytes = 0;
                PROCESS_ENDED
            }
            Record::AnswerDiscarded { reason, .. } => {
                self.uncounted_bytes = 0;
                reason
            }
            _ => return None,
        };
        let text = std::mem::take(&mut self.partial);
        (!text.is_empty()).then_some((text, reason))
    }

    fn change<'r>(&mut self, record: &'r Record) -> Change<'r> {
        match record {
            Record::Hooked { .. }
            | Record::Intent { .. }
            | Record::ApprovalRequested { .. }
            | Record::Decided { .. }
            | Record::Renewed { .. }
            | Record::Conflicted { .. }
            | Record::Refused { .. }
            | Record::PreviewStarted { .. }
            | Record::LayerEnded { .. }
            | Record::Previewed { .. }
            | Record::PreviewDropped { .. }
            | Record::Started { .. }
            | Record::Finished { .. }
            | Record::KeptFrom { .. }
            | Record::Resolved { .. } => self.change_call(record),
            Record::TaskStarted { .. }
            | Record::Steered { .. }
            | Record::TaskEnded { .. }
            | Record::Stopping { .. }
            | Record::Paused { .. }
            | Record::Continued
            | Record::Imported { .. } => self.change_task(record),
            Record::StepStarted { .. } | Record::StepCompleted { .. } | Record::Answer { .. } => self.change_step(record),
            Record::Wasted { .. }
            | Record::Sampled { .. }
            | Record::Reviewed { .. }
            | Record::Compacted { .. }
            | Record::CompactionUndone
            | Record::Truncated { .. } => self.change_context(record),
            Record::Queue { .. }
            | Record::ModelChosen { .. }
            | Record::BudgetSet { .. }
            | Record::PriceAssumed { .. }
            | Record::PolicyInForce { .. } => self.change_settings(record),
            Record::RewindStarted { .. } | Record::Rewound { .. } => self.change_conversation(record),
            Record::OwnStarted { .. } | Record::OwnEnded { .. } => self.change_user_command(record),
            Record::Registered { session } => {
                self.tenant_id.clone_from(&session.tenant_id);
                self.user_id.clone_from(&session.user_id);
                self.service_session = Some(session.as_ref().clone());
                Change::Registered { session }
            }
            Record::GoalChanged { change } => {
                GoalProgress::apply(&mut self.goal, change);
                Change::GoalChanged { change }
            }
            Record::Unreadable => {
                self.calls.assume_started();
                Change::Unreadable
            }
            Record::PartialAnswer { .. }
            | Record::AnswerDiscarded { .. }
            | Record::CompactionStarted { .. }
            | Record::CompactionGivenUp
            | Record::RuleSaved { .. }
            | Record::RuleRemoved { .. } => Change::None,
            Record::MandateSet { actions, asks, .. } => {
                self.mandate = Mandate { actions: actions.clone(), asks: asks.clone() };
                Change::None
            }
        }
    }

    fn change_call<'r>(&mut self, record: &'r Record) -> Change<'r> {
        match record {
            Record::ApprovalRequested { .. } => self.steps.set_stage(TaskStage::Waiting),
            Record::Decided { .. } => self.steps.set_stage(TaskStage::Running),
            Record::Finished { result, latency_ms } => {
                self.tool_uses.note(&result.tool_name, result.status, *latency_ms);
                if let Some(steps) = PlannedStep::list_in(result) {
                    self.planned_steps = steps;
                }
            }
            _ => {}
        }
        match self.calls.apply(record) {
            Some((tool_call_id, change)) => Change::Call { tool_call_id, change },
            None => Change::None,
        }
    }

    fn change_task<'r>(&mut self, record: &'r Record) -> Change<'r> {
        match record {
            Record::TaskStarted { prompt, max_steps } => {
                (self.pause, self.is_unfinished) = (None, true);
                self.task_totals = Totals::default();
                (self.parts, self.response) = (ResponseParts::default(), String::new());
                self.planned_steps.clear();
                self.mandate = Mandate::default();
                self.rewinds.add(prompt);
                self.steps.start_task(prompt, *max_steps);
                if let Some(goal) = &mut self.goal {
                    goal.on_task_start(&prompt.task_id);
                }
                Change::TaskStarted { prompt, max_steps: *max_steps }
            }
            Record::Steered { message } => Change::Steered { message },
            Record::TaskEnded { end, step_count, .. } => {
                (self.pause, self.is_unfinished) = (None, *end != TaskEnd::Completed);
                self.mandate = Mandate::default();
                self.steps.end_task(end, *step_count);
                if let Some(goal) = &mut self.goal {
                    goal.on_task_end();
                }
                Change::TaskEnded { end, step_count: *step_count }
            }
            Record::Stopping { .. } => Change::Stopping,
            Record::Paused { failure } => {
                self.pause = Some(failure.clone());
                self.steps.set_stage(TaskStage::Paused);
                Change::Paused { failure }
            }
            Record::Continued => {
                self.pause = None;
                self.steps.continue_task();
                if let Some(goal) = &mut self.goal {
                    goal.on_task_continued();
                }
                Change::Continued
            }
            Record::Imported { tenant_id, user_id, policy_bundle_version, step_count, step_cursor } => {
                self.tenant_id.clone_from(tenant_id);
                self.user_id.clone_from(user_id);
                self.policy_bundle_version.clone_from(policy_bundle_version);
                self.steps.import(*step_count, step_cursor.as_ref());
                Change::Imported { step_count: *step_count }
            }
            _ => Change::None,
        }
    }

    fn change_step<'r>(&mut self, record: &'r Record) -> Change<'r> {
        match record {
            Record::StepStarted { task_id, step_id, step_count } => {
                self.steps.start_step(step_id, *step_count);
                Change::StepStarted { task_id, step_id, step_count: *step_count }
            }
            Record::StepCompleted { step_id, step_count, message, .. } => {
                self.steps.complete_step(step_id, *step_count);
                Change::StepCompleted { message, step_count: *step_count }
            }
            Record::Answer { message, usage, stop_reason, latency_ms, model, cost_usd, estimated } => {
                let spent = Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated };
                self.task_totals.add(spent);
                self.asked_model.clone_from(model);
                self.response = self.parts.full_text(&message.text());
                self.parts.note(message, *stop_reason);
                self.calls.request(message.tool_calls());
                self.steps.answer(message, *stop_reason);
                Change::Answered { message, stop_reason: *stop_reason, latency_ms: *latency_ms, model, spent }
            }
            _ => Change::None,
        }
    }

    /// Applies a record about a request that produced no response for the user, or about a change to the messages
    /// that are sent.
    fn change_context<'r>(&mut self, record: &'r Record) -> Change<'r> {
        match record {
            Record::Wasted { usage, cost_usd, estimated, .. } => {
                let spent = Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated };
                self.task_totals.add(spent);
                Change::Spent { spent, payer: Payer::FailedRequest }
            }
            Record::Sampled { server, usage, cost_usd, estimated } => {
                let spent = Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated };
                self.task_totals.add(spent);
                Change::Spent { spent, payer: Payer::Server(server) }
            }
            Record::Reviewed { usage, cost_usd, estimated } => {
                let spent = Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated };
                Change::Spent { spent, payer: Payer::Review }
            }
            Record::Compacted { until, message, compaction, verbatim, usage, cost_usd, estimated } => {
                let spent = Expense { usage: *usage, cost_usd: *cost_usd, estimated: *estimated };
                self.task_totals.add(spent);
                self.compactions.push(compaction.tokens_before);
                Change::Compacted { until, message, verbatim, compaction, spent }
            }
            Record::CompactionUndone => Change::CompactionUndone { tokens: self.compactions.pop() },
            Record::Truncated { tokens, removed } => Change::Truncated { tokens: *tokens, removed: *removed },
            _ => Change::None,
        }
    }

    fn change_settings<'r>(&mut self, record: &'r Record) -> Change<'r> {
        match record {
            Record::Queue { prompts } => {
                self.queue.clone_from(prompts);
                Change::QueueChanged { prompts }
            }
            Record::ModelChosen { model, effort } => {
                let choice = ModelChoice { model: model.clone(), effort: *effort };
                self.asked_model.clone_from(model);
                Change::ModelChosen { before: self.model.replace(choice.clone()), choice }
            }
            Record::BudgetSet { limit } => Change::BudgetSet { limit },
            Record::PriceAssumed { model, price } => Change::PriceAssumed { model, price: *price },
            Record::PolicyInForce { layers, mode, chosen_mode } => {
                self.policy = Some(layers.clone());
                self.mode = mode.or(self.mode);
                self.chosen_mode = chosen_mode.or(self.chosen_mode);
                self.policy_bundle_version = PolicyLayer::combined_version(layers);
                Change::PolicyChanged { mode: *mode }
            }
            _ => Change::None,
        }
    }

    fn change_conversation<'r>(&mut self, record: &'r Record) -> Change<'r> {
        match record {
            Record::RewindStarted { rewind_id, target, scope, overwrite } => {
                Change::RewindStarted { rewind_id, target, scope: *scope, overwrite }
            }
            Record::Rewound { rewind_id, from, rewound } => {
                let effect = self.rewinds.apply(from.as_ref(), rewound);
                if let PromptRewind::Cut { prompts, .. } = &effect {
                    self.planned_steps.clear();
                    self.mandate = Mandate::default();
                    self.steps.drop_task(|id| prompts.iter().any(|prompt| prompt.task_id == *id));
                }
                Change::Rewound { rewind_id, from: from.as_ref(), rewound, effect }
            }
            _ => Change::None,
        }
    }

    fn change_user_command<'r>(&mut self, record: &'r Record) -> Change<'r> {
        match record {
            Record::OwnStarted { task_id, step_id, call, shared, check } => {
                self.user_command = Some(call.tool_call_id.clone());
                self.calls.request(std::iter::once(call));
                Change::UserCommandStarted {
                    task_id,
                    step_id,
                    call,
                    line: records::command_line(call),
                    shared: *shared,
                    check: *check,
                }
            }
            Record::OwnEnded { said, .. } => {
                Change::UserCommandEnded { tool_call_id: self.user_command.take(), shared: said.as_deref() }
            }
            _ => Change::None,
        }
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally.tally
    }

    /// Returns the session totals.
    pub(crate) fn totals(&self) -> Totals {
        self.tally.tally.totals
    }

    /// Returns the last task, or `None` if there is none or a rewind removed it from the conversation.
    pub(crate) fn task(&self) -> Option<&TaskProgress> {
        self.steps.task.as_ref()
    }

    /// Returns the ID of the last completed step.
    pub(crate) fn step_cursor(&self) -> Option<&StepId> {
        self.steps.last_step()
    }

    /// Returns the calls in the open step.
    pub(crate) fn calls(&self) -> &[OpenCall] {
        self.calls.list()
    }

    pub(crate) fn call(&self, id: &CallId) -> Option<&OpenCall> {
        self.calls().iter().rev().find(|call| call.tool_call_id == *id)
    }

    /// Removes and returns the calls in the open step.
    pub(crate) fn take_calls(&mut self) -> Vec<OpenCall> {
        self.calls.close()
    }

    /// Returns the prompts in the conversation.
    pub(crate) fn prompts(&self) -> &[Prompt] {
        &self.rewinds.prompts
    }

    /// Returns the text of a response that was cut off at the end of the journal, with the reason, or `None` if no
    /// response was cut off.
    pub(crate) fn interrupted_answer(&self) -> Option<(&str, &'static str)> {
        (!self.partial.is_empty()).then_some((self.partial.as_str(), PROCESS_ENDED))
    }

    /// Returns the number of bytes of streamed response text that no recorded usage includes.
    pub(crate) fn uncounted_bytes(&self) -> usize {
        self.uncounted_bytes
    }

    /// Returns the full text of the last task's last response.
    pub(crate) fn last_response(&self) -> &str {
        &self.response
    }

    /// Returns whether the session is idle until the next prompt.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_empty() && !self.is_unfinished && !self.goal.as_ref().is_some_and(GoalProgress::is_active)
    }

    /// Returns the totals of the session and of its last task, for a screen that shows only the end of the session.
    pub(crate) fn history_sum(&self) -> HistorySum {
        let (session, task) = (self.totals(), self.task_totals);
        HistorySum {
            usage: session.usage,
            cost_usd: session.cost_usd,
            estimated: session.estimated,
            task_usage: task.usage,
            task_cost_usd: task.cost_usd,
            task_estimated: task.estimated,
            tools: self.tool_uses.list(),
        }
    }
}
