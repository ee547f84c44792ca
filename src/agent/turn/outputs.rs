//! Outputs of the sub-machines: records, events and effects, in their order.

use super::Effect;
use crate::ports::{Durability, Record};
use crate::protocol::EventKind;

/// One thing that a sub-machine wants done.
#[derive(Debug)]
pub(super) enum Output {
    /// Goes into the journal with the next commit.
    Record(Record),
    Commit(Durability),
    /// The turn machine adds the task and the step that it belongs to.
    Event(EventKind),
    Effect(Effect),
}

/// What a sub-machine wants done, in order. It has no effect until the turn machine performs it.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Outputs(Vec<Output>);

impl Outputs {
    pub fn record(&mut self, record: Record) {
        self.0.push(Output::Record(record));
    }

    pub fn commit(&mut self, durability: Durability) {
        self.0.push(Output::Commit(durability));
    }

    pub fn event(&mut self, kind: EventKind) {
        self.0.push(Output::Event(kind));
    }

    pub fn notice(&mut self, message: impl Into<String>) {
        self.event(EventKind::Notice { message: message.into() });
    }

    pub fn effect(&mut self, effect: Effect) {
        self.0.push(Output::Effect(effect));
    }

    pub fn append(&mut self, Self(mut others): Self) {
        self.0.append(&mut others);
    }
}

impl IntoIterator for Outputs {
    type Item = Output;
    type IntoIter = std::vec::IntoIter<Output>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
