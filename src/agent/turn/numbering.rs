//! Numbering of tasks, steps, messages, approvals and timers within a session.

use crate::protocol::{ApprovalId, MessageId, StepId, TaskId};

/// Highest numbers used so far.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    tasks: u32,
    steps: u32,
    messages: u64,
    approvals: u32,
    tickets: u64,
}

impl Numbering {
    pub(crate) fn tasks(&self) -> u32 {
        self.tasks
    }

    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    pub(crate) fn next_task(&mut self) -> TaskId {
        self.tasks += 1;
        TaskId::new(format!("task_{:03}", self.tasks))
    }

    pub(crate) fn next_step(&mut self) -> StepId {
        self.steps += 1;
        StepId::new(format!("step_{:04}", self.steps))
    }

    pub(crate) fn next_message(&mut self) -> MessageId {
        self.messages += 1;
        MessageId::new(format!("msg_{:05}", self.messages))
    }

    pub(crate) fn next_approval(&mut self) -> ApprovalId {
        self.approvals += 1;
        ApprovalId::new(format!("appr_{:03}", self.approvals))
    }

    /// Returns the ticket for the next timer or preview.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Counts a restored task.
    pub(crate) fn count_task(&mut self) {
        self.tasks += 1;
    }

    /// Counts a restored step.
    pub(crate) fn count_step(&mut self) {
        self.steps += 1;
    }

    /// Continues numbering after the steps of an imported session.
    pub(crate) fn continue_after(&mut self, steps: u32) {
        self.steps = self.steps.max(steps);
    }

    /// Counts a restored approval.
    pub(crate) fn count_approval(&mut self) {
        self.approvals += 1;
    }

    /// Continues numbering after a restored message.
    pub(crate) fn count_message(&mut self, message_id: &MessageId) {
        let number = message_id.as_str().rsplit('_').next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        self.messages = self.messages.max(number);
    }
}
