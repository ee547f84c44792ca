//! Prompt queue: user messages that wait for the task to end or for its next step.

use super::super::limits::MAX_QUEUED;
use super::io::Effect;
use super::outputs::Outputs;
use crate::ports::{Durability, Record};
use crate::protocol::{EventKind, QueuedMessage};
use std::collections::VecDeque;

/// Queued messages in the order in which they were sent. The user can edit messages while they are queued.
#[derive(Debug, Default)]
pub(super) struct PromptQueue {
    waiting: VecDeque<QueuedMessage>,
    /// Highest ID used so far.
    last_id: u64,
}

impl PromptQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a message. A steering message is sent with the next step, and any other message waits for the task to
    /// end.
    pub(crate) fn add(&mut self, text: String, steer: bool, out: &mut Outputs) {
        if text.trim().is_empty() {
            return;
        }
        if self.waiting.len() >= MAX_QUEUED {
            out.notice(format!("{MAX_QUEUED} messages are already queued; the new message is back in your draft"));
            return self.return_to_draft(text, out);
        }
        let id = self.next_id();
        self.waiting.push_back(QueuedMessage { id, text, steer });
        self.commit_change(out);
    }

    /// Adds a prompt to the front of the queue while the files that it mentions are being read. Returns the prompt's
    /// ID.
    pub(crate) fn add_first(&mut self, text: String, out: &mut Outputs) -> u64 {
        let id = self.next_id();
        self.waiting.push_front(QueuedMessage { id, text, steer: false });
        out.record(self.record());
        out.commit(Durability::Process);
        id
    }

    /// Changes a queued message, or removes it if the new text is empty.
    pub(crate) fn edit(&mut self, id: u64, text: String, out: &mut Outputs) {
        let Some(place) = self.waiting.iter().position(|waiting| waiting.id == id) else {
            out.notice(if text.trim().is_empty() {
                "the message was already sent to the model"
            } else {
                "the message was already sent unchanged; your edit is in the draft"
            });
            return self.return_to_draft(text, out);
        };
        if text.trim().is_empty() {
            self.waiting.remove(place);
        } else {
            self.waiting[place].text = text;
        }
        self.commit_change(out);
    }

    /// Removes and returns the message with the given ID, which is about to become a task.
    pub(crate) fn take(&mut self, id: u64, out: &mut Outputs) -> Option<String> {
        let place = self.waiting.iter().position(|waiting| waiting.id == id)?;
        let waiting = self.waiting.remove(place)?;
        out.record(self.record());
        if !self.is_empty() {
            out.event(self.event());
        }
        Some(waiting.text)
    }

    /// Removes all steering messages and returns them joined into one, because some providers reject consecutive user
    /// messages.
    pub(crate) fn take_steering(&mut self, out: &mut Outputs) -> Option<String> {
        let text = self.steering()?;
        self.record_change(out);
        Some(text)
    }

    /// Removes and returns the next message: first any steering messages whose step never started, then the oldest
    /// prompt.
    pub(crate) fn take_next(&mut self, out: &mut Outputs) -> Option<String> {
        let text = self.steering().or_else(|| self.waiting.pop_front().map(|waiting| waiting.text))?;
        self.record_change(out);
        Some(text)
    }

    /// Turns a failed task's steering messages into prompts, so they do not steer a different task.
    pub(crate) fn stop_steering(&mut self, out: &mut Outputs) {
        if self.waiting.iter().any(|waiting| waiting.steer) {
            self.waiting.iter_mut().for_each(|waiting| waiting.steer = false);
            self.record_change(out);
        }
    }

    /// Moves all messages to the draft. A user who stops a task does not expect the queued messages to run.
    pub(crate) fn return_all_to_draft(&mut self, out: &mut Outputs) {
        if self.is_empty() {
            return;
        }
        let text = self.waiting.drain(..).map(|waiting| waiting.text).collect::<Vec<_>>().join("\n\n");
        // The draft is saved before the queue is emptied: a crash in between then duplicates the messages instead of
        // losing them.
        out.effect(Effect::SaveDraft(text.clone()));
        self.commit_change(out);
        out.event(EventKind::DraftRestored { text });
    }

    /// Moves a message that arrived too late or exceeds the limit to the draft.
    pub(crate) fn return_to_draft(&self, text: String, out: &mut Outputs) {
        if !text.trim().is_empty() {
            out.effect(Effect::SaveDraft(text.clone()));
            out.event(EventKind::DraftRestored { text });
            // Other messages are still queued.
            out.event(self.event());
        }
    }

    /// Restores the queue from the journal. Older versions did not store IDs.
    pub(crate) fn restore(&mut self, prompts: Vec<QueuedMessage>) {
        let last = prompts.iter().map(|waiting| waiting.id).max().unwrap_or(0);
        self.last_id = self.last_id.max(last);
        self.waiting = prompts.into();
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.id == 0) {
            self.last_id += 1;
            waiting.id = self.last_id;
        }
    }

    /// Returns an event with the current queue.
    pub(crate) fn event(&self) -> EventKind {
        EventKind::QueueChanged { waiting: self.waiting.iter().cloned().collect() }
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &QueuedMessage> {
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

    /// Records the queue, to be committed together with the records that follow.
    fn record_change(&self, out: &mut Outputs) {
        out.record(self.record());
        out.event(self.event());
    }

    /// Records and commits the queue.
    fn commit_change(&self, out: &mut Outputs) {
        out.record(self.record());
        out.commit(Durability::Process);
        out.event(self.event());
    }
}
