//! Last output of a running command, saved while it runs. After a crash, aye shows the output when it asks the user
//! what to do.

use crate::agent::limits::{TAIL_BEAT_MS, TAIL_BYTES, TAIL_SAVE_MS};
use crate::protocol::cut_position_after;
use std::time::Duration;
use tokio::time::Instant;

/// Last output of one command.
pub(super) struct OutputTail {
    text: String,
    /// Whether there is output since the last save.
    is_changed: bool,
    /// Time of the last save, or of the start.
    saved: Instant,
}

impl OutputTail {
    pub(crate) fn new() -> Self {
        Self { text: String::new(), is_changed: false, saved: Instant::now() }
    }

    pub(crate) fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.is_changed = true;
        if self.text.len() > 2 * TAIL_BYTES {
            self.text.drain(..cut_position_after(&self.text, self.text.len() - TAIL_BYTES));
        }
    }

    /// Returns when the next save is due. The output of a silent command is saved periodically too, because the save
    /// records its run time.
    pub(crate) fn due(&self) -> Instant {
        self.saved + Duration::from_millis(if self.is_changed { TAIL_SAVE_MS } else { TAIL_BEAT_MS })
    }

    /// Returns the text to save.
    pub(crate) fn take(&mut self, now: Instant) -> String {
        (self.is_changed, self.saved) = (false, now);
        self.text[cut_position_after(&self.text, self.text.len().saturating_sub(TAIL_BYTES))..].to_owned()
    }
}
