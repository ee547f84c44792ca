//! Status request to the terminal, whose response shows that a frame is on the screen.

/// Pending status requests. Responses arrive in the order of the requests, without an identifier.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    wanted: bool,
    sent: u64,
    answered: u64,
    /// Number of the request for the dialog that has keyboard focus.
    own: Option<u64>,
}

impl Fence {
    /// Requests a status with the next frame, because the content changed.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
        self.own = None;
    }

    /// Stops waiting for a response, because no panel needs it.
    pub(crate) fn forget(&mut self) {
        self.wanted = false;
        self.own = None;
    }

    /// Returns whether the frame just drawn is the first one with the content, so that the terminal
    /// must be queried.
    pub(crate) fn take(&mut self) -> bool {
        if !std::mem::take(&mut self.wanted) {
            return false;
        }
        self.sent += 1;
        self.own = Some(self.sent);
        true
    }

    /// Handles the response to the oldest request. Returns whether it concerns the current content.
    pub(crate) fn on_response(&mut self) -> bool {
        self.answered = (self.answered + 1).min(self.sent);
        self.own == Some(self.answered)
    }
}
