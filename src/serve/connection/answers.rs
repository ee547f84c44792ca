//! Pending responses: their recipients and conditions.

use crate::serve::message::{Id, RpcResponse};

/// The recipient of a response.
#[derive(Debug, Default)]
pub(super) enum Recipient {
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
pub(super) struct ResponseBatch {
    pub left: usize,
    pub answers: Vec<RpcResponse>,
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
