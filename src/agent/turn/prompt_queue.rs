//! Prompt queue: messages of the user that wait for the end of the task, or for its next step.

use super::super::limits::MAX_QUEUED;
use super::Effect;
use super::outputs::Outputs;
use crate::ports::{Durability, Record};
use crate::protocol::{EventKind, Waiting};
use std::collections::VecDeque;

/// Queued messages in the order in which they were sent. The user can edit them until they are taken.
#[derive(Debug, Default)]
pub(super) struct PromptQueue {
    waiting: VecDeque<Waiting>,
    /// Highest ID used so far.
    last_id: u64,
}

impl PromptQueue {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a message: for the next step if it steers, otherwise for after the task.
    pub fn add(&mut self, text: String, steer: bool) -> Outputs {
        let mut outputs = Outputs::default();
        if text.trim().is_empty() {
            return outputs;
        }
        if self.waiting.len() >= MAX_QUEUED {
            outputs.notice(format!("{MAX_QUEUED} messages are already queued; this one is back in your draft"));
            outputs.append(self.return_to_draft(text));
            return outputs;
        }
        let id = self.next_id();
        self.waiting.push_back(Waiting { id, text, steer });
        self.saved()
    }

    /// Puts a prompt first while the files it mentions are read. Returns its ID.
    pub fn add_first(&mut self, text: String) -> (u64, Outputs) {
        let id = self.next_id();
        self.waiting.push_front(Waiting { id, text, steer: false });
        let mut outputs = Outputs::default();
        outputs.record(self.record());
        outputs.commit(Durability::Process);
        (id, outputs)
    }

    /// Changes a queued message, or removes it if the text is empty.
    pub fn edit(&mut self, id: u64, text: String) -> Outputs {
        let Some(place) = self.waiting.iter().position(|waiting| waiting.id == id) else {
            let mut outputs = Outputs::default();
            outputs.notice(if text.trim().is_empty() {
                "that message was already sent to the model"
            } else {
                "that message was already sent unchanged; your edit is in the draft"
            });
            outputs.append(self.return_to_draft(text));
            return outputs;
        };
        if text.trim().is_empty() {
            self.waiting.remove(place);
        } else {
            self.waiting[place].text = text;
        }
        self.saved()
    }

    /// Removes the message with this ID, which becomes a task.
    pub fn take(&mut self, id: u64) -> Option<(String, Outputs)> {
        let place = self.waiting.iter().position(|waiting| waiting.id == id)?;
        let waiting = self.waiting.remove(place)?;
        let mut outputs = Outputs::default();
        outputs.record(self.record());
        if !self.is_empty() {
            outputs.event(self.event());
        }
        Some((waiting.text, outputs))
    }

    /// Removes all messages for the next step, joined into one, because not every provider accepts several user messages in a row.
    pub fn take_steering(&mut self) -> Option<(String, Outputs)> {
        let text = self.steering()?;
        Some((text, self.changed()))
    }

    /// Removes the next message: steering messages whose step never came first, then the oldest prompt.
    pub fn take_next(&mut self) -> Option<(String, Outputs)> {
        let text = self.steering().or_else(|| self.waiting.pop_front().map(|waiting| waiting.text))?;
        Some((text, self.changed()))
    }

    /// Turns steering messages of a failed task into prompts, so that they steer no other task.
    pub fn stop_steering(&mut self) -> Outputs {
        if !self.waiting.iter().any(|waiting| waiting.steer) {
            return Outputs::default();
        }
        self.waiting.iter_mut().for_each(|waiting| waiting.steer = false);
        self.changed()
    }

    /// Moves all messages to the draft, because a user who stops a task does not want the queued ones to run.
    pub fn return_all_to_draft(&mut self) -> Outputs {
        let mut outputs = Outputs::default();
        if self.is_empty() {
            return outputs;
        }
        let text = self.waiting.drain(..).map(|waiting| waiting.text).collect::<Vec<_>>().join("\n\n");
        // The draft is saved before the queue is emptied: a crash in between shows the messages twice rather than never.
        outputs.effect(Effect::SaveDraft(text.clone()));
        outputs.append(self.saved());
        outputs.event(EventKind::DraftRestored { text });
        outputs
    }

    /// Moves a message that came too late, or exceeds the limit, to the draft.
    pub fn return_to_draft(&self, text: String) -> Outputs {
        let mut outputs = Outputs::default();
        if !text.trim().is_empty() {
            outputs.effect(Effect::SaveDraft(text.clone()));
            outputs.event(EventKind::DraftRestored { text });
            // Other messages are still queued.
            outputs.event(self.event());
        }
        outputs
    }

    /// Restores the queue from the journal. Older versions stored no IDs.
    pub fn restore(&mut self, prompts: Vec<Waiting>) {
        let last = prompts.iter().map(|waiting| waiting.id).max().unwrap_or(0);
        self.last_id = self.last_id.max(last);
        self.waiting = prompts.into();
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.id == 0) {
            self.last_id += 1;
            waiting.id = self.last_id;
        }
    }

    /// Returns the event that shows the queue.
    pub fn event(&self) -> EventKind {
        EventKind::QueueChanged { waiting: self.waiting.iter().cloned().collect() }
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter()
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn steering(&mut self) -> Option<String> {
        let texts: Vec<&str> = self.waiting.iter().filter(|waiting| waiting.steer).map(|waiting| waiting.text.as_str()).collect();
        let text = (!texts.is_empty()).then(|| texts.join("\n\n"));
        self.waiting.retain(|waiting| !waiting.steer);
        text
    }

    fn record(&self) -> Record {
        Record::Queue { prompts: self.waiting.iter().cloned().collect() }
    }

    /// Records the change in the same commit as what follows from it.
    fn changed(&self) -> Outputs {
        let mut outputs = Outputs::default();
        outputs.record(self.record());
        outputs.event(self.event());
        outputs
    }

    /// Records the change and commits it at once.
    fn saved(&self) -> Outputs {
        let mut outputs = Outputs::default();
        outputs.record(self.record());
        outputs.commit(Durability::Process);
        outputs.event(self.event());
        outputs
    }
}
