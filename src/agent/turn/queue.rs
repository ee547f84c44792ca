//! What the person says while the agent works: for after the task, or for its next step; theirs until it is taken.

use super::super::limits::MAX_QUEUED;
use super::{Effect, Machine, Moment, Phase};
use crate::ports::{Durability, Record};
use crate::protocol::{EventKind, Part, Role, Waiting};

impl Machine {
    pub(super) fn enqueue(&mut self, text: String, steer: bool) {
        if text.trim().is_empty() {
            return;
        }
        if self.queue.len() >= MAX_QUEUED {
            self.notice(format!("{MAX_QUEUED} messages wait already; this one is in your draft"));
            return self.give_back(text);
        }
        self.counters.waiting += 1;
        self.queue.push_back(Waiting { id: self.counters.waiting, text, steer });
        self.save_queue();
    }

    /// Says it to the model before its next step. Where the task is paused it waits for `Continue`; where none runs, or one is
    /// being stopped, it is a prompt.
    pub(super) fn steer(&mut self, text: String, at: Moment) {
        match &self.task {
            Some(task) if !task.cancelling => {
                let paused = matches!(task.phase, Phase::Paused);
                self.enqueue(text, true);
                if paused {
                    self.notice("the task is paused; the model gets the message once the task continues");
                }
            }
            // It has no step yet, but will have.
            None if self.opening.is_some() => self.enqueue(text, true),
            Some(_) | None => self.prompt(text, at),
        }
    }

    /// Changes a message that waits, or takes it back.
    pub(super) fn edit_waiting(&mut self, id: u64, text: String) {
        let Some(place) = self.queue.iter().position(|waiting| waiting.id == id) else {
            let taken = text.trim().is_empty();
            self.notice(if taken {
                "that message was taken already: the model has it"
            } else {
                "that message was taken already, as it was; your words are in the draft"
            });
            return self.give_back(text);
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

    /// What waits for the next step, as one message: not every provider takes several of the person in a row.
    fn steering(&mut self) -> Option<String> {
        let texts: Vec<&str> = self.queue.iter().filter(|waiting| waiting.steer).map(|waiting| waiting.text.as_str()).collect();
        let text = (!texts.is_empty()).then(|| texts.join("\n\n"));
        self.queue.retain(|waiting| !waiting.steer);
        text
    }

    /// Says what waits for this step, behind the results of the one before; leaving the queue and becoming a message are one commit,
    /// that of the step.
    pub(super) fn take_steers(&mut self, at: Moment) {
        let Some(text) = self.steering() else { return };
        self.note_queue();
        self.tell_queue();
        if let Some(message) = self.message(Role::User, vec![Part::Text { text: text.clone() }], at) {
            self.note(Record::Steered { message: message.clone() });
            self.thread.push(message);
        }
        self.emit(EventKind::Steered { text });
    }

    /// Starts what waits: first what was for a step that did not come any more, then what waits longest. Leaving the queue and
    /// becoming a task are one commit.
    pub(super) fn start_next(&mut self, at: Moment) {
        let next = self.steering().or_else(|| self.queue.pop_front().map(|waiting| waiting.text));
        if let Some(text) = next {
            self.note_queue();
            self.tell_queue();
            self.begin(text, at);
        }
    }

    /// What was to steer a task that failed steers no other: it waits as a prompt does.
    pub(super) fn steer_no_other(&mut self) {
        if self.queue.iter().any(|waiting| waiting.steer) {
            self.queue.iter_mut().for_each(|waiting| waiting.steer = false);
            self.note_queue();
            self.tell_queue();
        }
    }

    /// The queue as the journal has it. An older version gave no ids.
    pub(super) fn fold_queue(&mut self, prompts: Vec<Waiting>) {
        let last = prompts.iter().map(|waiting| waiting.id).max().unwrap_or(0);
        self.counters.waiting = self.counters.waiting.max(last);
        self.queue = prompts.into();
        for waiting in self.queue.iter_mut().filter(|waiting| waiting.id == 0) {
            self.counters.waiting += 1;
            waiting.id = self.counters.waiting;
        }
    }

    /// Who stops a task does not want what waits behind it to run: the messages go back into the draft.
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

    /// Words that came too late, or are too many: they are the person's again.
    pub(super) fn give_back(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.out.push(Effect::SaveDraft(text.clone()));
            self.emit(EventKind::DraftRestored { text });
            // Others wait on.
            self.tell_queue();
        }
    }
}
