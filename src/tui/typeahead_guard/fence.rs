//! The question to the terminal whose answer says that what was drawn is on the screen.

/// Answers come in the order of the questions, and nothing in them says which question they belong to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    wanted: bool,
    sent: u64,
    answered: u64,
    /// The one that belongs to what has the keyboard.
    own: Option<u64>,
}

impl Fence {
    /// Something else is shown: it is asked about with its first frame.
    pub fn want(&mut self) {
        self.wanted = true;
        self.own = None;
    }

    /// Nothing is shown that waits for an answer.
    pub fn forget(&mut self) {
        self.wanted = false;
        self.own = None;
    }

    /// Whether the frame just drawn is the first: then the terminal is asked.
    pub fn take(&mut self) -> bool {
        if !std::mem::take(&mut self.wanted) {
            return false;
        }
        self.sent += 1;
        self.own = Some(self.sent);
        true
    }

    /// The terminal answered one question, the oldest; whether that is the one about what is shown.
    pub fn answered(&mut self) -> bool {
        self.answered = (self.answered + 1).min(self.sent);
        self.own == Some(self.answered)
    }
}
