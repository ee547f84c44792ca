//! Output buffer, which collects the sub-machines' records, commits, events and effects in order.

use super::io::Effect;
use crate::ports::{Durability, Record};
use crate::protocol::{EventKind, NoticeKind, StepId, TaskId};

/// Buffer that the sub-machines write to. Its content takes effect only when the host performs it.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// Records for the next commit.
    pending: Vec<Record>,
    effects: Vec<Effect>,
    /// Task and step assigned to subsequent events.
    task_id: Option<TaskId>,
    step_id: Option<StepId>,
}

impl Outputs {
    /// Adds a record, which is written with the next commit.
    pub(crate) fn record(&mut self, record: Record) {
        self.pending.push(record);
    }

    /// Adds records, which are written with the next commit.
    pub(crate) fn records(&mut self, records: Vec<Record>) {
        self.pending.extend(records);
    }

    /// Commits the records added since the last commit, if any.
    pub(crate) fn commit(&mut self, durability: Durability) {
        if !self.pending.is_empty() {
            let records = std::mem::take(&mut self.pending);
            self.effects.push(Effect::Commit(records, durability));
        }
    }

    pub(crate) fn event(&mut self, kind: EventKind) {
        let (task_id, step_id) = (self.task_id.clone(), self.step_id.clone());
        self.effects.push(Effect::Emit { task_id, step_id, kind });
    }

    pub(crate) fn notice(&mut self, message: impl Into<String>) {
        self.event(EventKind::notice(message));
    }

    /// Adds a notice that front ends treat specially.
    pub(crate) fn special_notice(&mut self, kind: NoticeKind, message: impl Into<String>) {
        self.event(EventKind::Notice { message: message.into(), kind: Some(kind) });
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Sets the task and step assigned to subsequent events.
    pub(crate) fn set_scope(&mut self, task_id: Option<TaskId>, step_id: Option<StepId>) {
        (self.task_id, self.step_id) = (task_id, step_id);
    }

    /// Removes and returns the effects. State changes are moved before the events that announce them, so a reader of
    /// such an event finds the new state.
    pub(crate) fn take(&mut self) -> Vec<Effect> {
        let effects = std::mem::take(&mut self.effects);
        let mut ordered: Vec<Effect> = Vec::with_capacity(effects.len());
        let mut since_change = 0;
        for effect in effects {
            if matches!(&effect, Effect::Emit { kind: EventKind::StateChanged { .. }, .. }) {
                let first = ordered[since_change..].iter().position(announces);
                ordered.insert(first.map_or(ordered.len(), |first| since_change + first), effect);
                since_change = ordered.len();
            } else {
                ordered.push(effect);
            }
        }
        ordered
    }

    #[cfg(test)]
    pub(crate) fn pending(&self) -> &[Record] {
        &self.pending
    }
}

/// Returns whether an event announces a state change that is reported after it.
fn announces(effect: &Effect) -> bool {
    let Effect::Emit { kind, .. } = effect else { return false };
    matches!(
        kind,
        EventKind::SessionPaused { .. }
            | EventKind::PolicyExpired { .. }
            | EventKind::TaskStarted { .. }
            | EventKind::TaskCompleted { .. }
            | EventKind::TaskFailed { .. }
            | EventKind::PromptBlocked { .. }
            | EventKind::TaskCancelled { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalResolved { .. }
            | EventKind::ApprovalTimeout { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::PreviewStarted { .. }
    )
}
