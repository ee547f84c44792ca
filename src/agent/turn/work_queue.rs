//! Work queue of the turn machine: outputs of one sub-machine that become inputs to others.

use super::compaction::SummaryCall;
use crate::protocol::{Failure, Part};
use std::collections::VecDeque;

/// Work that follows from a sub-machine's output.
#[derive(Debug)]
pub(super) enum WorkItem {
    /// Start a task with this prompt. `attached` is content shown to the model together with the prompt.
    Task {
        text: String,
        attached: Vec<Part>,
    },
    /// Start the next queued prompt.
    NextPrompt,
    /// Start the next queued prompt, unless something else is running after the rewind.
    PromptAfterRewind,
    /// Continue the goal if nothing else is running.
    GoalRound,
    /// Continue a paused task, a task that ended early, or the next queued prompt.
    Continue,
    /// Send the task's request, unless that is forbidden. `attempt` counts the retries of the same request.
    Request {
        attempt: u32,
    },
    /// Send the request of a compaction that has begun.
    SummaryBegun,
    /// Send the summary request again, unless that is forbidden.
    SummaryDue,
    SummaryRequest(Box<SummaryCall>),
    /// Find a fallback model that writes the summary after this failure.
    SummaryFallback(Failure),
    /// Commit the records of the preceding work.
    Commit,
    /// End the session.
    End,
}

/// Queue of the work that remains for the current input.
///
/// Work added by an item is done before the items that were added earlier, as if the item had called a function.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    items: VecDeque<WorkItem>,
    /// Items added by the current item.
    added: Vec<WorkItem>,
}

impl WorkQueue {
    /// Adds an item. It is placed after the items that the current item has already added.
    pub(crate) fn add(&mut self, item: WorkItem) {
        self.added.push(item);
    }

    /// Removes and returns the next item.
    pub(crate) fn take_next(&mut self) -> Option<WorkItem> {
        while let Some(item) = self.added.pop() {
            self.items.push_front(item);
        }
        self.items.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_work_precedes_the_work_that_was_added_before_its_cause() {
        let mut queue = WorkQueue::default();
        queue.add(WorkItem::Continue);
        queue.add(WorkItem::Commit);
        assert!(matches!(queue.take_next(), Some(WorkItem::Continue)));
        queue.add(WorkItem::NextPrompt);
        queue.add(WorkItem::GoalRound);
        assert!(matches!(queue.take_next(), Some(WorkItem::NextPrompt)));
        queue.add(WorkItem::Request { attempt: 0 });
        assert!(matches!(queue.take_next(), Some(WorkItem::Request { attempt: 0 })));
        assert!(matches!(queue.take_next(), Some(WorkItem::GoalRound)));
        assert!(matches!(queue.take_next(), Some(WorkItem::Commit)));
        assert!(queue.take_next().is_none());
    }
}
