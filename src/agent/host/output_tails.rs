//! The last that commands printed, kept while they run: after a crash it is shown beside the question what to do.

use super::Host;
use crate::agent::limits::{TAIL_BEAT_MS, TAIL_BYTES, TAIL_SAVE_MS};
use crate::agent::turn::Input;
use crate::ports::Tail;
use crate::protocol::cut_after;
use std::time::Duration;
use tokio::time::Instant;

/// Of one command.
pub(super) struct Printed {
    text: String,
    /// It printed since it was kept last.
    more: bool,
    /// When it was kept last, or began.
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

    /// A silent one is kept too, now and then, so that it is known how long it ran.
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

    /// When the next is to be kept.
    pub(super) fn tail_due(&self) -> Option<Instant> {
        self.runs.values().filter(|running| running.is_command).map(|running| running.printed.due()).min()
    }

    pub(super) fn save_tails(&mut self) {
        let now = Instant::now();
        // What cannot be saved has other worries.
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
