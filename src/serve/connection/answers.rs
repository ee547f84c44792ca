//! Responses that are pending: who receives them, and what they are waiting for.

use crate::serve::message::{Id, RpcResponse};

/// Recipient of a response.
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

/// Responses to a batch of requests, collected until all of them are available.
#[derive(Debug)]
pub(super) struct ResponseBatch {
    pub left: usize,
    pub answers: Vec<RpcResponse>,
}

/// Event that a pending response is waiting for.
#[derive(Debug)]
pub(super) enum WaitCondition {
    /// The next task starts.
    Begin,
    /// The decision is recorded in the journal.
    Decided { approval_id: String },
    /// The list of changes arrives.
    Changes,
    /// The proposals in the memory inbox arrive.
    Memory,
}
