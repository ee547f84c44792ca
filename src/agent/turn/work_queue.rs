//! Work queue of the turn machine: outputs of a sub-machine that become inputs of others.

use super::compaction::SummaryCall;
use crate::protocol::{Failure, Part};
use std::collections::VecDeque;

/// Work that follows an output of a sub-machine.
#[derive(Debug)]
pub(super) enum WorkItem {
    /// A task starts with this prompt. `attached`: content shown to the model with it.
    Task {
        text: String,
        attached: Vec<Part>,
    },
    /// The next queued prompt becomes a task.
    NextPrompt,
    /// The next queued prompt becomes a task, unless something else runs after the rewind.
    PromptAfterRewind,
    /// The goal continues, if nothing else runs.
    GoalRound,
    /// A paused task, a task that ended early, or the next queued prompt continues.
    Continue,
    /// The request of the task is sent, unless it is forbidden. `attempt` counts retries of the same request.
    Request {
        attempt: u32,
    },
    /// A compaction has begun, and its request is sent.
    SummaryBegun,
    /// The summary request is sent again, unless it is forbidden.
    SummaryDue,
    SummaryRequest(Box<SummaryCall>),
    /// A fallback model has to write the summary after this failure.
    SummaryFallback(Failure),
    /// The records of the preceding work are committed.
    Commit,
    /// The session ends.
    End,
}

/// Queue of the work that remains for the current input.
///
/// Work that an item adds is done before the items that were added earlier, as if the item had called it.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    items: VecDeque<WorkItem>,
    /// Items that the current one added.
    added: Vec<WorkItem>,
}

impl WorkQueue {
    /// Adds an item after those that the current one added before.
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
