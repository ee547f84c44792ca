//! Order of concurrent calls: calls run in parallel unless one changes what another uses.

use crate::ports::{Plan, Reach};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Scheduler {
    running: Mutex<Vec<Footprint>>,
    /// Notified when a call ends.
    over: watch::Sender<u64>,
}

/// The resources that a running call needs undisturbed.
#[derive(Debug, Clone)]
struct Footprint {
    number: u64,
    changes: bool,
    touches: Vec<PathBuf>,
    runs: Vec<PathBuf>,
}

/// Permission to run, which dropping returns.
pub(crate) struct RunSlot<'a> {
    order: &'a Scheduler,
    number: u64,
    /// True if an earlier call may have changed the resources of this one.
    pub waited: bool,
}

impl Footprint {
    fn reach(&self) -> Reach<'_> {
        Reach { changes: self.changes, touches: &self.touches, runs: &self.runs }
    }
}

impl Scheduler {
    /// Waits until no running call conflicts with this plan.
    pub(crate) fn turn<'a>(&'a self, plan: &Plan) -> impl Future<Output = RunSlot<'a>> + Send + use<'a> {
        let claim = Footprint { number: 0, changes: plan.changes, touches: plan.touches(), runs: plan.runs.clone() };
        async move {
            let mut over = self.over.subscribe();
            let mut waited = false;
            loop {
                if let Some(number) = self.claim(&claim) {
                    return RunSlot { order: self, number, waited };
                }
                waited = true;
                // The sender is alive.
                let _ = over.changed().await;
            }
        }
    }

    fn claim(&self, claim: &Footprint) -> Option<u64> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.iter().any(|other| other.reach().collides(&claim.reach())) {
            return None;
        }
        let number = running.iter().map(|other| other.number + 1).max().unwrap_or_default();
        running.push(Footprint { number, ..claim.clone() });
        Some(number)
    }
}

impl Drop for RunSlot<'_> {
    fn drop(&mut self) {
        self.order.running.lock().unwrap_or_else(PoisonError::into_inner).retain(|claim| claim.number != self.number);
        self.order.over.send_modify(|over| *over += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Action, Arguments, CallId, Place, Target, ToolCall};
    use futures_util::FutureExt;

    fn plan(path: &str, changes: bool) -> Plan {
        let real = PathBuf::from(path);
        let target = Target { given: path.to_owned(), real, place: Place::File { bytes: 0 } };
        let arguments = Arguments::Object(serde_json::Map::new());
        let call = ToolCall { tool_call_id: CallId::new("call"), tool_name: "Tool".to_owned(), arguments };
        let actions = vec![if changes { Action::Write { target } } else { Action::Read { target } }];
        Plan { actions, changes, ..Plan::bare(call, "Tool".to_owned(), Box::new(())) }
    }

    #[tokio::test]
    async fn reads_of_one_file_run_together_and_a_change_of_it_waits_for_both() {
        let order = Scheduler::default();
        let (first, second) = (order.turn(&plan("/w/a", false)).await, order.turn(&plan("/w/a", false)).await);
        assert!(!first.waited && !second.waited);
        let change = plan("/w/a", true);
        let mut waiting = Box::pin(order.turn(&change));
        assert!((&mut waiting).now_or_never().is_none());
        drop(first);
        assert!((&mut waiting).now_or_never().is_none(), "the other one still reads");
        assert!(!order.turn(&plan("/w/b", true)).await.waited, "another file is another matter");
        drop(second);
        assert!(waiting.await.waited, "it is told that it has to be planned anew");
    }
}
