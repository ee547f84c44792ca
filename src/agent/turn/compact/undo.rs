//! Undoing a compaction: the replaced messages are restored.

use super::super::TurnMachine;
use crate::ports::{Durability, Record};
use crate::protocol::{EventKind, counted};

impl TurnMachine {
    pub(in crate::agent::turn) fn undo_compaction(&mut self) {
        if self.is_compacting() {
            return self.notice("compaction is running; stop it first");
        }
        if self.rewinds.is_running() {
            return self.notice("a rewind is restoring files; try again in a moment");
        }
        if !self.thread.has_summary() {
            return self.notice("nothing to undo: this conversation has not been compacted");
        }
        self.note(Record::CompactionUndone);
        self.commit(Durability::Power);
        self.take_summary_back();
        let tokens = self.next_input_tokens();
        self.emit(EventKind::CompactionUndone { tokens });
        let limit = self.input_limit();
        if tokens > limit {
            self.notice(format!(
                "the messages are restored: about {}, of which {limit} fit; the next request leaves out the oldest",
                counted(tokens, "token", "tokens")
            ));
        }
    }

    /// Removes the summary; also used when restoring a journal.
    pub(in crate::agent::turn) fn take_summary_back(&mut self) {
        if self.thread.undo() {
            self.room.counting.counted = 0;
            // After an undo, no automatic compaction should follow at once.
            self.be_quiet();
        }
    }
}
