//! Save state of the session.

/// Whether the session is being saved and, if it cannot be, what happens to it.
#[derive(Debug, Default)]
pub(crate) struct SaveState {
    /// Whether the session continues in memory only, in which case a crash would lose unsaved work.
    pub unsaved: bool,
    /// Reason why the session is paused, until it can be saved or the user decides to continue, and the time in
    /// milliseconds since which the reason has been shown.
    pub stopped: Option<(String, u64)>,
    /// Whether the user has asked for a retry, whose outcome is not known yet.
    pub again: bool,
    /// Whether another process owns the session, in which case it cannot continue here.
    pub lost: bool,
}

impl SaveState {
    pub(crate) fn is_saved(&self) -> bool {
        !self.unsaved && self.stopped.is_none() && !self.lost
    }
}
