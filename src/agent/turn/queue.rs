//! What the person says while the agent works: for after the task, or for its next step; theirs until it is taken.

use super::super::limits::MAX_QUEUED;
use super::{Effect, Machine, Moment};
use crate::ports::{Durability, Record};
use crate::protocol::{EventKind, Waiting};

impl Machine {
    pub(super) fn enqueue(&mut self, text: String, steer: bool) {
        if self.queue.len() >= MAX_QUEUED {
            return self.notice(format!("{MAX_QUEUED} messages wait already; this one was not kept: {text}"));
        }
        self.counters.waiting += 1;
        self.queue.push_back(Waiting { id: self.counters.waiting, text, steer });
        self.save_queue();
    }

    /// Says it to the model with the next step's results.
    pub(super) fn steer(&mut self, text: String, at: Moment) {
        self.prompt(text, at);
    }

    /// Changes a message that waits, or takes it back.
    pub(super) fn edit_waiting(&mut self, id: u64, text: String) {
        let Some(place) = self.queue.iter().position(|waiting| waiting.id == id) else {
            return self.notice("that message was taken already");
        };
        if text.trim().is_empty() {
            self.queue.remove(place);
        } else {
            self.queue[place].text = text;
        }
        self.save_queue();
    }

    pub(super) fn note_queue(&mut self) {
        self.note(Record::Queue { prompts: self.queue.iter().cloned().collect() });
    }

    fn save_queue(&mut self) {
        self.note_queue();
        self.commit(Durability::Process);
        self.tell_queue();
    }

    pub(super) fn tell_queue(&mut self) {
        self.emit(EventKind::QueueChanged { waiting: self.queue.iter().cloned().collect() });
    }

    /// Starts what waits longest; leaving the queue and becoming a task are one commit.
    pub(super) fn start_next(&mut self, at: Moment) {
        if let Some(next) = self.queue.pop_front() {
            self.note_queue();
            self.tell_queue();
            self.begin(next.text, at);
        }
    }

    /// Who stops a task does not want what waits behind it to run: the prompts go back into the draft.
    pub(super) fn give_back_queue(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        let text = self.queue.drain(..).map(|waiting| waiting.text).collect::<Vec<_>>().join("\n\n");
        // First into the draft, then out of the queue: a crash between the two shows them twice, not never.
        self.out.push(Effect::SaveDraft(text.clone()));
        self.save_queue();
        self.emit(EventKind::DraftRestored { text });
    }
}
