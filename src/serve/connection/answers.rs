//! Pending responses: their recipients and conditions.

use crate::serve::message::{Answer, Id};

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

/// The condition of a pending response.
#[derive(Debug)]
pub(super) enum WaitCondition {
    /// The start of the next task.
    Begin,
    /// The decision is recorded in the journal.
    Decided { approval_id: String },
    /// The list of changes has arrived.
    Changes,
    /// The proposals of the memory inbox.
    Memory,
}
