//! Lost summary: the process ended while it was being made. Nothing comes of it, and the user is told.

use super::super::TurnMachine;
use crate::ports::Record;

impl TurnMachine {
    /// Ends the summary that the process before this one began, where it did.
    pub(in crate::agent::turn) fn tell_of_lost_summary(&mut self, is_compacting: bool) {
        if is_compacting {
            self.note(Record::CompactionGivenUp);
            self.notice("aye exited while compacting: there is no summary, and the conversation is unchanged");
        }
    }
}
