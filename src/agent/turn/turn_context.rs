//! Context shared by the sub-machines: the policy in effect, the session options, the numbering and the output
//! buffer.

use super::numbering::Numbering;
use super::options::AgentOptions;
use super::outputs::Outputs;
use crate::policy::Enforcer;
use crate::ports::{Durability, Record};
use crate::protocol::{
    EventKind, Failure, FailureKind, Message, Mode, Part, PlannedStep, PolicyLayer, Remedy, Role, StepId, TaskId,
};
use jiff::Timestamp;

/// Shared session state, and the buffer for the sub-machines' outputs.
pub(super) struct TurnContext {
    pub policy: Enforcer,
    pub options: AgentOptions,
    pub numbers: Numbering,
    pub out: Outputs,
    /// Steps that the model planned for the task.
    pub planned_steps: Vec<PlannedStep>,
    /// Whether the next request should omit all messages before the response that proposed the approved plan.
    pub wants_clean_context: bool,
    /// Choices that the user made before the first message.
    choices: Vec<Record>,
    /// Whether the policy in effect has been recorded in the journal.
    is_policy_recorded: bool,
}

impl TurnContext {
    pub(crate) fn new(policy: Enforcer, options: AgentOptions) -> Self {
        Self {
            policy,
            options,
            numbers: Numbering::default(),
            out: Outputs::default(),
            planned_steps: Vec::new(),
            wants_clean_context: false,
            choices: Vec::new(),
            is_policy_recorded: false,
        }
    }

    /// Records a choice made by the user. A session without messages is not saved, so any record made before the
    /// first prompt is buffered until then.
    pub(crate) fn record_setting(&mut self, record: Record) {
        if self.numbers.tasks() == 0 {
            self.choices.push(record);
        } else {
            self.out.record(record);
            self.out.commit(Durability::Process);
        }
    }

    /// Records the usage of a request that is not part of the thread. Unlike a choice, it is saved even if no prompt
    /// follows.
    pub(crate) fn record_expense(&mut self, record: Record) {
        self.out.record(record);
        self.out.commit(Durability::Process);
    }

    /// Records the choices made before the first prompt.
    pub(crate) fn record_choices(&mut self) {
        self.out.records(std::mem::take(&mut self.choices));
    }

    /// Records the policy in effect. Must be called before any verdict.
    pub(crate) fn record_policy(&mut self) {
        if !std::mem::replace(&mut self.is_policy_recorded, true) {
            if let Some(session) = self.options.service_session.take() {
                self.out.record(Record::Registered { session });
            }
            self.out.record(Record::PolicyInForce {
                layers: self.policy.layers().into_iter().map(|layer| PolicyLayer { rules: Vec::new(), ..layer }).collect(),
                mode: Some(self.policy.mode()),
                chosen_mode: self.options.chosen_mode,
            });
        }
    }

    /// Records a mode that the user chose. In a session without messages, it is recorded before the first verdict.
    pub(crate) fn record_mode_choice(&mut self, mode: Mode) {
        self.options.chosen_mode = Some(mode);
        if self.numbers.tasks() > 0 {
            self.is_policy_recorded = false;
            self.record_policy();
        }
    }

    /// Records a policy change if a policy has already been recorded. Otherwise, the new policy is recorded before
    /// the first verdict.
    pub(crate) fn record_policy_change(&mut self) {
        if self.is_policy_recorded {
            self.is_policy_recorded = false;
            self.record_policy();
        }
    }

    /// Replaces the planned steps and reports them if they changed.
    pub(crate) fn set_planned_steps(&mut self, steps: Vec<PlannedStep>) {
        if steps != self.planned_steps {
            self.planned_steps.clone_from(&steps);
            self.out.event(EventKind::PlannedStepsChanged { steps });
        }
    }

    /// Creates a new message that belongs to a task.
    pub(crate) fn message(
        &mut self,
        role: Role,
        content: Vec<Part>,
        (task_id, step_id): (TaskId, Option<StepId>),
        timestamp: Timestamp,
    ) -> Message {
        Message {
            message_id: self.numbers.next_message(),
            role,
            token_count: super::super::context::estimate(&content),
            content,
            task_id,
            step_id,
            timestamp,
        }
    }

    pub(crate) fn model_name(&self) -> &str {
        &self.options.model.name
    }

    /// Returns the model's context window in tokens, or the policy's limit if that is lower.
    pub(crate) fn window(&self) -> u64 {
        self.policy.llm().filter_map(|limits| limits.max_input_tokens).fold(self.options.model.context_window, u64::min)
    }

    pub(crate) fn response_limit(&self) -> u64 {
        self.policy.llm().filter_map(|limits| limits.max_output_tokens).fold(self.options.max_output_tokens, u64::min)
    }

    /// Returns the reason why no request may be sent regardless of budgets and size, if there is one.
    pub(crate) fn request_failure(&self, now: Timestamp) -> Option<Failure> {
        if let Some(message) = self.policy.expiry_reason(now) {
            return Some(
                Failure::new(FailureKind::PolicyExpired, message, "update the policy file").with_remedy(Remedy::Continue),
            );
        }
        if let Err(denial) = self.policy.check_model(&self.options.model.name) {
            return Some(Failure::new(
                FailureKind::Permission,
                format!("{} (rule: {})", denial.reason, denial.rule),
                "choose another model with -m, or add this one to `allowed_models` in the policy",
            ));
        }
        None
    }
}
