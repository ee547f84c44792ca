//! Last output of commands, saved while they run. After a crash it is shown when aye asks what to do.

use super::Host;
use crate::agent::limits::{TAIL_BEAT_MS, TAIL_BYTES, TAIL_SAVE_MS};
use crate::agent::turn::Input;
use crate::ports::Tail;
use crate::protocol::cut_after;
use std::time::Duration;
use tokio::time::Instant;

/// Output of one command.
pub(super) struct Printed {
    text: String,
    /// Whether there is output since the last save.
    more: bool,
    /// Time of the last save, or of the start.
    kept: Instant,
}

impl Printed {
    pub(super) fn new() -> Self {
        Self { text: String::new(), more: false, kept: Instant::now() }
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.more = true;
        if self.text.len() > 2 * TAIL_BYTES {
            self.text.drain(..cut_after(&self.text, self.text.len() - TAIL_BYTES));
        }
    }

    /// Returns when the next save is due. A silent command is saved from time to time too, so that its run time is known.
    fn due(&self) -> Instant {
        self.kept + Duration::from_millis(if self.more { TAIL_SAVE_MS } else { TAIL_BEAT_MS })
    }

    fn last(&self) -> &str {
        &self.text[cut_after(&self.text, self.text.len().saturating_sub(TAIL_BYTES))..]
    }
}

impl Host {
    pub(super) fn note_output(&mut self, input: &Input) {
        if let Input::ToolOutput { index, text } = input
            && let Some(running) = self.runs.get_mut(index)
        {
            running.printed.add(text);
        }
    }

    /// Returns when the next save is due for any command.
    pub(super) fn tail_due(&self) -> Option<Instant> {
        self.runs.values().filter(|running| running.is_command).map(|running| running.printed.due()).min()
    }

    pub(super) fn save_tails(&mut self) {
        let now = Instant::now();
        // Nothing is saved while earlier records cannot be.
        let can_save = self.stalled.is_empty() && !self.journal.is_unsaved();
        for running in self.runs.values_mut().filter(|running| running.is_command && running.printed.due() <= now) {
            (running.printed.more, running.printed.kept) = (false, now);
            if can_save {
                let ran_ms = u64::try_from(running.since.elapsed().as_millis()).unwrap_or(u64::MAX);
                let tail = Tail { text: running.printed.last().to_owned(), ran_ms };
                self.journal.save_tail(running.id.clone(), tail);
            }
        }
    }
}
