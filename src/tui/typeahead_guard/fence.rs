//! Status requests to the terminal. A response proves that the frame sent before the request is on the screen.

/// Pending status requests. Responses carry no identifier but arrive in the order of the requests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    wanted: bool,
    sent: u64,
    answered: u64,
    /// Number of the request sent for the current content, if one was sent.
    own: Option<u64>,
}

impl Fence {
    /// Requires a status request after the next frame because the content has changed.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
        self.own = None;
    }

    /// Stops waiting for a response because nothing on the screen needs one.
    pub(crate) fn forget(&mut self) {
        self.wanted = false;
        self.own = None;
    }

    /// Returns whether the frame just drawn is the first one that shows the content. If so, the caller must send a
    /// status request to the terminal.
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
