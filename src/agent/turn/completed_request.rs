//! Result of a completed request: its usage, its duration and how it ended.

use crate::ports::Record;
use crate::protocol::{Message, StopReason};
use crate::session::Expense;

/// Result of a completed request, excluding its content.
#[derive(Debug)]
pub(super) struct CompletedRequest {
    pub spent: Expense,
    pub stop_reason: StopReason,
    pub latency_ms: u64,
    pub model: String,
}

impl CompletedRequest {
    pub(super) fn record(&self, message: Message) -> Record {
        let Expense { usage, cost_usd, estimated } = self.spent;
        let (stop_reason, latency_ms, model) = (self.stop_reason, self.latency_ms, self.model.clone());
        Record::Answer { message, usage, stop_reason, latency_ms, model, cost_usd, estimated }
    }
}
