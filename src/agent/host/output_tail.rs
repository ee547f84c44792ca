//! Latest output of a running command, saved while the command runs. After a crash, aye shows this output when it
//! asks the user how to proceed.

use crate::agent::limits::{TAIL_BEAT_MS, TAIL_BYTES, TAIL_SAVE_MS};
use crate::protocol::cut_position_after;
use std::time::Duration;
use tokio::time::Instant;

/// Latest output of a single command.
pub(super) struct OutputTail {
    text: String,
    /// Whether output has arrived since the last save.
    is_changed: bool,
    /// Time of the last save, or of the command's start.
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

    /// Returns the time at which the next save is due. Even if the command is silent, its output is saved
    /// periodically, because each save also records how long the command has been running.
    pub(crate) fn due(&self) -> Instant {
        self.saved + Duration::from_millis(if self.is_changed { TAIL_SAVE_MS } else { TAIL_BEAT_MS })
    }

    /// Returns the text to save and marks it as saved.
    pub(crate) fn take(&mut self, now: Instant) -> String {
        (self.is_changed, self.saved) = (false, now);
        self.text[cut_position_after(&self.text, self.text.len().saturating_sub(TAIL_BYTES))..].to_owned()
    }
}
