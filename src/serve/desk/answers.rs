//! Pending responses: whom they go to, and what they wait for.

use super::{Act, Desk};
use crate::serve::fault::Fault;
use crate::serve::message::{Answer, Id, Outgoing};
use serde_json::Value;

/// The recipient of a response.
#[derive(Debug, Default)]
pub(super) enum Slot {
    #[default]
    Nobody,
    One(Id),
    Part {
        batch: u64,
        id: Id,
    },
}

/// The responses of a batch, until all are complete.
#[derive(Debug)]
pub(super) struct Batch {
    pub left: usize,
    pub answers: Vec<Answer>,
}

/// The condition that a response waits for.
#[derive(Debug)]
pub(super) enum Wait {
    /// The start of the next task.
    Begin,
    /// The decision is recorded in the journal.
    Decided { approval_id: String },
    /// The list of changes.
    Changes,
}

impl Desk {
    /// Sends all responses that wait for this condition.
    pub(super) fn settle(&mut self, is: impl Fn(&Wait) -> bool, outcome: impl Fn(&Wait) -> Result<Value, Fault>) {
        let (settled, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(|(_, wait)| is(wait));
        self.waiting = waiting;
        let settled: Vec<(Slot, Wait)> = settled;
        for (slot, wait) in settled {
            self.answer(slot, outcome(&wait));
        }
    }

    pub(super) fn settle_first(&mut self, is: impl Fn(&Wait) -> bool, outcome: Result<Value, Fault>) {
        if let Some(at) = self.waiting.iter().position(|(_, wait)| is(wait)) {
            let (slot, _) = self.waiting.remove(at);
            self.answer(slot, outcome);
        }
    }

    pub(super) fn answer(&mut self, slot: Slot, outcome: Result<Value, Fault>) {
        match slot {
            Slot::Nobody => {}
            Slot::One(id) => self.send(Outgoing::Answer(Answer { id, outcome })),
            Slot::Part { batch, id } => {
                let Some(open) = self.batches.get_mut(&batch) else { return };
                open.answers.push(Answer { id, outcome });
                open.left -= 1;
                if open.left == 0
                    && let Some(Batch { answers, .. }) = self.batches.remove(&batch)
                {
                    self.send(Outgoing::Batch(answers));
                }
            }
        }
    }

    pub(super) fn send(&mut self, outgoing: Outgoing) {
        self.acts.push(Act::Send(outgoing));
    }
}
