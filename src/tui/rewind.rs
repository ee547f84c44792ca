//! State of a requested rewind.

/// State of a rewind.
#[derive(Debug, Default)]
pub(crate) struct Rewind {
    /// Request sent to the session, and its time in milliseconds.
    pub awaits: Option<(PendingRewind, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingRewind {
    Points,
    Plan,
    /// The rewind itself was requested.
    Done,
}
