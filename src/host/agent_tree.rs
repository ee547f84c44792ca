//! Tree of a session's agents and the agents that they start in turn, all of which share the same limits.

use crate::protocol::SessionId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Maximum number of agents that a session and its agents can start within one process.
pub(crate) const MAX_AGENTS: usize = 500;

/// Position of a session in the tree of agents. Cheap to clone; all positions share the limits of the tree.
#[derive(Clone)]
pub(crate) struct AgentTree {
    shared: Arc<Shared>,
    /// Depth of the session in the tree, which is 0 for the session that the user started.
    level: u32,
    /// The agent's own slot, which it lends to one of its agents at a time while waiting for them. Otherwise, all slots
    /// could be taken by agents that wait for other agents.
    own_slot: Option<Arc<Semaphore>>,
}

struct Shared {
    slots: Arc<Semaphore>,
    started: AtomicUsize,
    /// Tokens that stop the agents, by session ID.
    stops: Mutex<HashMap<SessionId, CancellationToken>>,
}

impl AgentTree {
    /// Creates a tree for a session that the user started, in which up to `at_once` agents run concurrently.
    pub(crate) fn new(at_once: usize) -> Self {
        let shared = Shared { slots: Arc::new(Semaphore::new(at_once)), started: AtomicUsize::new(0), stops: Mutex::default() };
        Self { shared: Arc::new(shared), level: 0, own_slot: None }
    }

    /// Returns the position of an agent started by this session.
    pub(crate) fn below(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), level: self.level + 1, own_slot: Some(Arc::new(Semaphore::new(1))) }
    }

    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Counts an agent as started, and registers the token that stops it. Returns `false` if the tree has reached its
    /// limit.
    pub(crate) fn admit(&self, agent: SessionId, stop: CancellationToken) -> bool {
        let admitted = |count: usize| (count < MAX_AGENTS).then_some(count + 1);
        if self.shared.started.fetch_update(Ordering::AcqRel, Ordering::Acquire, admitted).is_err() {
            return false;
        }
        self.shared.stops.lock().unwrap_or_else(PoisonError::into_inner).insert(agent, stop);
        true
    }

    /// Stops an agent anywhere in the tree.
    pub(crate) fn stop(&self, agent: &SessionId) {
        if let Some(stop) = self.shared.stops.lock().unwrap_or_else(PoisonError::into_inner).get(agent) {
            stop.cancel();
        }
    }

    /// Waits for a free slot among the agents that may run concurrently.
    pub(crate) async fn slot(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let shared = Arc::clone(&self.shared.slots).acquire_owned();
        match &self.own_slot {
            Some(own) => tokio::select! {
                biased;
                slot = Arc::clone(own).acquire_owned() => slot,
                slot = shared => slot,
            },
            None => shared.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn agents_that_wait_for_their_agents_never_occupy_all_slots() {
        let session = AgentTree::new(2);
        let (first, second) = (session.below(), session.below());
        let held: Vec<_> = (0..2).map(|_| session.slot().now_or_never().unwrap().unwrap()).collect();
        assert!(session.slot().now_or_never().is_none(), "two work at the same time");
        // On every level, each agent lends its own slot to one agent.
        let below = first.below();
        let lent = [&first, &second, &below].map(|tree| tree.slot().now_or_never().unwrap().unwrap());
        assert!(first.slot().now_or_never().is_none(), "one at a time");
        drop(held);
        assert!(first.slot().now_or_never().is_some(), "or a free place");
        drop(lent);
        assert_eq!([session.level(), first.level(), below.level()], [0, 1, 2]);
    }

    #[test]
    fn all_agents_of_the_tree_count_and_can_be_stopped() {
        let session = AgentTree::new(1);
        let below = session.below().below();
        let stop = CancellationToken::new();
        let id = |number: usize| SessionId::new(number.to_string());
        assert!(below.admit(id(0), stop.clone()));
        session.stop(&id(0));
        assert!(stop.is_cancelled());
        assert!((1..MAX_AGENTS).all(|number| session.admit(id(number), CancellationToken::new())));
        assert!(!session.admit(id(MAX_AGENTS), stop.clone()) && !below.admit(id(MAX_AGENTS), stop));
    }
}
