//! Account of a running session, which pays for its agents and for reviews alongside the conversation.

use crate::protocol::{AgentEvent, AssumedPrice, Budget, Effort, EventKind, Failure, SessionId};
use crate::session::Expense;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of charges that wait for the session.
const DEPTH: usize = 8;

/// A request to count, if one was sent, an event to emit, and the channel for the resulting state of the account.
pub(super) struct Charge {
    pub spent: Option<(Expense, ChargedWork)>,
    /// Event about the charged work, for the front end, and the agent that reports it.
    pub event: Option<(EventKind, Option<SessionId>)>,
    pub answer: oneshot::Sender<AccountState>,
}

/// Work that counts toward the cost of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChargedWork {
    /// A review, which does not belong to a task.
    Review,
    /// An agent, which counts toward the cost of the running task.
    Agent,
}

/// State of the account.
#[derive(Debug, Clone)]
pub(crate) struct AccountState {
    /// Reason why no further request may be sent.
    pub failure: Option<Failure>,
    /// Name of the model in use.
    pub model: String,
    pub effort: Option<Effort>,
    /// Price assumed for this model, if its price is unknown.
    pub assumed_price: Option<AssumedPrice>,
    pub budgets: Vec<Budget>,
}

/// Counts requests in the totals and budgets of a session.
#[derive(Clone)]
pub(crate) struct Account {
    charges: mpsc::Sender<Charge>,
}

impl Account {
    /// Returns the account and its charges.
    pub(super) fn new() -> (Self, mpsc::Receiver<Charge>) {
        let (charges, receive) = mpsc::channel(DEPTH);
        (Self { charges }, receive)
    }

    /// Returns the state of the account; `None` if the session has ended.
    pub(crate) async fn state(&self) -> Option<AccountState> {
        self.charge(None, None).await
    }

    /// Counts a request from an agent. Returns the reason why no further request may be sent; `None` if one may be sent,
    /// or if the session has ended.
    pub(crate) async fn count_agent(&self, spent: Expense) -> Option<Failure> {
        self.charge(Some((spent, ChargedWork::Agent)), None).await?.failure
    }

    /// Emits an event of an agent as an event of the session.
    pub(crate) async fn emit(&self, event: AgentEvent) {
        let _ = self.charge(None, Some((EventKind::Agent(event), None))).await;
    }

    /// Forwards an event of an agent's session that concerns an approval of its call, or of a call of one of its own agents.
    /// Decisions go back to this agent.
    pub(crate) async fn relay(&self, event: EventKind, agent: &SessionId) {
        let _ = self.charge(None, Some((event, Some(agent.clone())))).await;
    }

    /// Counts a request from a review. Returns the reason why no further request may be sent, like
    /// [`Self::count_agent`].
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
