//! Interrupted compaction: the process exited during it. There is no summary, and the user is told.

use super::super::TurnMachine;
use crate::ports::Record;

impl TurnMachine {
    /// Ends the compaction that the previous process started, if there was one.
    pub(in crate::agent::turn) fn tell_of_lost_summary(&mut self, is_compacting: bool) {
        if is_compacting {
            self.note(Record::CompactionGivenUp);
            self.notice("aye exited while compacting: there is no summary, and the conversation is unchanged");
        }
    }
}
