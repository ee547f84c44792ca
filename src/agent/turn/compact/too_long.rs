//! Requests that the provider finds too long: shortened and sent once more.

use super::super::{InputTime, TurnMachine};
use super::AfterSummary;
use crate::protocol::{CompactionTrigger, Failure};

impl TurnMachine {
    /// Shortens a request that the provider found too long, and sends it once more. Returns whether it did.
    pub(in crate::agent::turn) fn shorten(&mut self, at: InputTime) -> bool {
        let name = self.room.counting.model.clone();
        let tokens = self.room.counting.real(&name, self.room.counting.asked);
        self.room.counting.too_long(&name, tokens);
        // The request was too long for a model that is no longer the current one.
        let other = name != self.model_name();
        if !other && std::mem::replace(&mut self.room.too_long, true) {
            return false;
        }
        if let Some(failure) = self.preflight(at) {
            self.forbidden(failure);
            return true;
        }
        if other {
            self.request(0, at);
            return true;
        }
        let then = AfterSummary::Request { attempt: 0 };
        if self.begin_compaction(CompactionTrigger::TooLong, None, then, at).is_ok() {
            return true;
        }
        let shorter = self.drop_half();
        if shorter {
            self.request(0, at);
        }
        shorter
    }

    /// Adds a hint to the failure of a request that cannot be shortened.
    pub(in crate::agent::turn) fn cannot_be_shortened(&self, failure: Failure) -> Failure {
        let fixed = self.room.counting.real(self.model_name(), self.room.counting.fixed);
        let hint = if fixed * 2 > self.input_limit() {
            format!(
                "the instructions and tools alone have about {fixed} tokens; choose a model with a larger context window, or offer fewer \
                 tools with `[tools] enabled`"
            )
        } else {
            "ask for less at a time, start a new session, or choose a model with a larger context window".to_owned()
        };
        Failure { hint, ..failure }
    }
}
