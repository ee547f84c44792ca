//! Outputs of the sub-machines: records, events and effects, in order.

use super::Effect;
use crate::ports::{Durability, Record};
use crate::protocol::EventKind;

/// One output of a sub-machine.
#[derive(Debug)]
pub(super) enum Output {
    /// Record for the journal, written with the next commit.
    Record(Record),
    Commit(Durability),
    /// Event; the turn machine adds the task and step.
    Event(EventKind),
    Effect(Effect),
}

/// Outputs in order. They have no effect until the turn machine performs them.
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
