//! A summary that was being made when the process was killed: nothing comes of it, and that is said.

use super::super::Machine;
use crate::ports::Record;

impl Machine {
    /// Notes whether the journal breaks off while a summary is made.
    pub(in crate::agent::turn) fn fold_summary_begun(&mut self, record: &Record) {
        match record {
            Record::CompactionStarted { .. } => self.room.lost = true,
            // What it cost is no end of it: it may be asked for again. The others can be said meanwhile.
            Record::Wasted { .. }
            | Record::Sampled { .. }
            | Record::Queue { .. }
            | Record::ModelChosen { .. }
            | Record::BudgetSet { .. }
            | Record::PolicyInForce { .. } => {}
            _ => self.room.lost = false,
        }
    }

    /// Says it of a process that was killed there.
    pub(in crate::agent::turn) fn tell_of_lost_summary(&mut self) {
        if std::mem::take(&mut self.room.lost) {
            self.note(Record::CompactionGivenUp);
            self.notice("aye ended while it summed up the conversation: there is no summary, and all that was said is as it was");
        }
    }
}
