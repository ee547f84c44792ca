//! Undone entries stay visible and marked until they are restored.

use super::{Kind, Transcript};
use crate::protocol::{StepId, TaskId};

impl Transcript {
    /// Sets the task and step of entries added from now on.
    pub fn belongs_to(&mut self, task: Option<&TaskId>, step: Option<&StepId>) {
        if self.task.as_ref() != task {
            self.task = task.cloned();
        }
        if self.step.as_ref() != step {
            self.step = step.cloned();
        }
    }

    /// Marks everything from this task or step to the end as undone; without a task, from the last one not undone.
    pub fn undo(&mut self, task: Option<&TaskId>, step: Option<&StepId>) {
        let standing = |entry: &&super::Entry| entry.undone.is_none();
        let last = || self.entries.iter().rev().filter(standing).find_map(|entry| entry.task.clone());
        let Some(task) = task.cloned().or_else(last) else { return };
        let begins = |entry: &super::Entry| {
            let of_step = step.is_none_or(|step| entry.step.as_ref() == Some(step));
            entry.undone.is_none() && entry.task.as_ref() == Some(&task) && of_step
        };
        let Some(first) = self.entries.iter().position(begins) else { return };
        self.rewinds += 1;
        for entry in self.entries.iter_mut().skip(first).filter(|entry| entry.undone.is_none()) {
            entry.undone = Some(self.rewinds);
        }
    }

    /// Restores the entries of the latest rewind.
    pub fn redo(&mut self) {
        let Some(last) = self.entries.iter().filter_map(|entry| entry.undone).max() else { return };
        for entry in self.entries.iter_mut().filter(|entry| entry.undone == Some(last)) {
            entry.undone = None;
        }
    }

    /// Returns the latest response that was not undone.
    pub fn last_standing_answer(&self) -> Option<String> {
        self.entries.iter().rev().filter(|entry| entry.undone.is_none()).find_map(|entry| match &entry.kind {
            Kind::Answer { document, state: super::AnswerState::Done } => Some(document.text().to_owned()),
            _ => None,
        })
    }
}
