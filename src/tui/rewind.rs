//! State of a rewind that the user requested.

#[derive(Debug, Default)]
pub(crate) struct Rewind {
    /// Request to which the session has not responded yet, and the time in milliseconds at which it was sent.
    pub awaits: Option<(PendingRewind, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingRewind {
    Points,
    Plan,
    /// The rewind itself was requested and is not complete yet.
    Done,
}
