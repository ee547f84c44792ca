//! Account of a running session, through which its agents and reviews count towards its budgets.

use crate::protocol::{AgentEvent, AssumedPrice, Budget, Effort, EventKind, Failure, SessionId};
use crate::session::Expense;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of charges that may be queued for the session.
const DEPTH: usize = 8;

/// Request usage to count and an event to emit, both optional, with the channel that returns the updated account
/// state.
pub(super) struct Charge {
    pub spent: Option<(Expense, ChargedWork)>,
    /// Event to send to the front end, with the agent that reports it if decisions must be sent back to that agent.
    pub event: Option<(EventKind, Option<SessionId>)>,
    pub answer: oneshot::Sender<AccountState>,
}

/// Work that counts towards the session's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChargedWork {
    /// Review, which does not belong to a task.
    Review,
    /// Agent, which counts towards the running task's cost.
    Agent,
}

/// Current state of the account.
#[derive(Debug, Clone)]
pub(crate) struct AccountState {
    /// Reason why no further request may be sent, if any.
    pub failure: Option<Failure>,
    /// Name of the model currently in use.
    pub model: String,
    pub effort: Option<Effort>,
    /// Price assumed for this model, if its actual price is unknown.
    pub assumed_price: Option<AssumedPrice>,
    pub budgets: Vec<Budget>,
}

/// Handle for counting requests towards a session's totals and budgets.
#[derive(Clone)]
pub(crate) struct Account {
    charges: mpsc::Sender<Charge>,
}

impl Account {
    /// Creates an account and the receiver for its charges.
    pub(super) fn new() -> (Self, mpsc::Receiver<Charge>) {
        let (charges, receive) = mpsc::channel(DEPTH);
        (Self { charges }, receive)
    }

    /// Returns the account's state, or `None` if the session has ended.
    pub(crate) async fn state(&self) -> Option<AccountState> {
        self.charge(None, None).await
    }

    /// Counts a request made by an agent. Returns the reason why no further request may be sent, or `None` if another
    /// one may be sent or the session has ended.
    pub(crate) async fn count_agent(&self, spent: Expense) -> Option<Failure> {
        self.charge(Some((spent, ChargedWork::Agent)), None).await?.failure
    }

    /// Emits an agent's event as a session event.
    pub(crate) async fn emit(&self, event: AgentEvent) {
        let _ = self.charge(None, Some((EventKind::Agent(event), None))).await;
    }

    /// Forwards an event about the approval of a call made by `agent` or by one of its own agents. The resulting
    /// decision is sent back to `agent`.
    pub(crate) async fn relay(&self, event: EventKind, agent: &SessionId) {
        let _ = self.charge(None, Some((event, Some(agent.clone())))).await;
    }

    /// Counts a request made by a review. Like [`Self::count_agent`], returns the reason why no further request may
    /// be sent.
    pub(crate) async fn count(&self, spent: Expense) -> Option<Failure> {
        self.charge(Some((spent, ChargedWork::Review)), None).await?.failure
    }

    async fn charge(
        &self,
        spent: Option<(Expense, ChargedWork)>,
        event: Option<(EventKind, Option<SessionId>)>,
    ) -> Option<AccountState> {
        let (answer, answered) = oneshot::channel();
        self.charges.send(Charge { spent, event, answer }).await.ok()?;
        answered.await.ok()
    }
}
