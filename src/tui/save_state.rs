//! Save state of the session.

/// Save state of the session.
#[derive(Debug, Default)]
pub(crate) struct SaveState {
    /// Whether the session continues in memory only, so that a crash loses it.
    pub unsaved: bool,
    /// Reason why the session is paused until it can be saved or the user continues, and the time since which the
    /// reason is shown.
    pub stopped: Option<(String, u64)>,
    /// Whether the user retried and the result is pending.
    pub again: bool,
    /// Whether another process owns the session, so that it cannot continue here.
    pub lost: bool,
}

impl SaveState {
    pub(crate) fn is_saved(&self) -> bool {
        !self.unsaved && self.stopped.is_none() && !self.lost
    }
}
