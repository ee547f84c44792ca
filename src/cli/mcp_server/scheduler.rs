//! Orders concurrent calls. As in a session, a call waits for earlier calls whose effects it may depend on.

use crate::ports::CallOrder;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Open calls from one client, in order of arrival.
#[derive(Default)]
pub(crate) struct Scheduler {
    open: Mutex<Vec<ScheduledCall>>,
    /// Signals that a call has ended or that its order has been determined.
    changed: watch::Sender<u64>,
}

struct ScheduledCall {
    number: u64,
    /// Order of the call, or `None` if its arguments have not been examined yet.
    order: Option<CallOrder>,
}

/// A call's place in the queue of open calls. The call remains open until all clones are dropped.
#[derive(Clone)]
pub(crate) struct Arrival(Arc<QueueSlot>);

struct QueueSlot {
    scheduler: Arc<Scheduler>,
    number: u64,
}

impl Scheduler {
    /// Adds a call to the end of the queue.
    pub(crate) fn arrive(self: &Arc<Self>) -> Arrival {
        let mut open = self.open();
        let number = open.last().map_or(0, |last| last.number + 1);
        open.push(ScheduledCall { number, order: None });
        Arrival(Arc::new(QueueSlot { scheduler: Arc::clone(self), number }))
    }

    /// Sets the order of a call.
    fn set(&self, number: u64, order: CallOrder) {
        if let Some(call) = self.open().iter_mut().find(|call| call.number == number) {
            call.order = Some(order);
        }
        self.notify();
    }

    /// Returns whether all earlier calls on which the call must wait have ended.
    fn is_next(&self, number: u64) -> bool {
        let open = self.open();
        let own = open.iter().find(|call| call.number == number).and_then(|call| call.order.as_ref());
        let Some(own) = own else { return true };
        // An earlier call whose order is unknown may affect any call.
        let mut earlier = open.iter().take_while(|call| call.number < number);
        !earlier.any(|call| call.order.as_ref().is_none_or(|order| own.waits_for(order)))
    }

    fn open(&self) -> MutexGuard<'_, Vec<ScheduledCall>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        self.changed.send_modify(|changes| *changes += 1);
    }
}

impl Arrival {
    /// Sets the order of the call, and waits until all calls that must precede it have ended. Returns whether it had to
    /// wait, in which case its effects may have changed.
    pub(crate) async fn turn(&self, order: CallOrder) -> bool {
        let QueueSlot { scheduler, number } = &*self.0;
        let mut changed = scheduler.changed.subscribe();
        scheduler.set(*number, order);
        let mut waited = false;
        while !scheduler.is_next(*number) {
            waited = true;
            // Cannot fail, because the scheduler owns the sender.
            let _ = changed.changed().await;
        }
        waited
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.scheduler.open().retain(|call| call.number != self.number);
        self.scheduler.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Action, Place as FilePlace, Target};
    use futures_util::FutureExt;
    use std::path::PathBuf;

    fn order(path: &str, changes: bool) -> CallOrder {
        let target = Target { given: path.to_owned(), real: PathBuf::from(path), place: FilePlace::File { bytes: 0 } };
        let action = if changes { Action::Write { target } } else { Action::Read { target } };
        CallOrder::for_actions([action].iter(), changes)
    }

    #[tokio::test]
    async fn changes_wait_for_earlier_reads_of_a_file_and_reads_wait_for_earlier_changes() {
        let scheduler = Arc::new(Scheduler::default());
        let [first, second, change, other, after] = [(); 5].map(|()| scheduler.arrive());
        assert!(!first.turn(order("/w/a", false)).await && !second.turn(order("/w/a", false)).await);
        let mut waiting = Box::pin(change.turn(order("/w/a", true)));
        assert!((&mut waiting).now_or_never().is_none());
        drop(first);
        assert!((&mut waiting).now_or_never().is_none(), "the other one still reads");
        assert!(!other.turn(order("/w/b", true)).await, "another file is another matter");
        let mut read = Box::pin(after.turn(order("/w/a", false)));
        assert!((&mut read).now_or_never().is_none(), "the change came first");
        drop(second);
        assert!(waiting.await, "it has to be planned again");
        drop(change);
        assert!(read.await);
    }

    #[tokio::test]
    async fn a_call_waits_until_the_order_of_earlier_calls_is_determined() {
        let scheduler = Arc::new(Scheduler::default());
        let (first, second) = (scheduler.arrive(), scheduler.arrive());
        let mut waiting = Box::pin(second.turn(order("/w/a", false)));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(!first.turn(order("/w/b", true)).await);
        assert!(waiting.await);
    }
}
