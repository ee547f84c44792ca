//! Account of a running session, to which a review alongside the conversation is charged.

use crate::protocol::Failure;
use crate::session::Spent;
use tokio::sync::{mpsc, oneshot};

/// Number of charges waiting for the session.
const DEPTH: usize = 8;

/// A request to count, if one was sent, and the channel for the reason why no further request may be sent.
pub(super) struct Charge {
    pub spent: Option<Spent>,
    pub answer: oneshot::Sender<Option<Failure>>,
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

    /// Returns why no request may be sent; `None` if one may be sent, or if the session has ended.
    pub(crate) async fn forbids(&self) -> Option<Failure> {
        self.charge(None).await
    }

    /// Counts a request, and returns why no further request may be sent, like [`Self::forbids`].
    pub(crate) async fn count(&self, spent: Spent) -> Option<Failure> {
        self.charge(Some(spent)).await
    }

    async fn charge(&self, spent: Option<Spent>) -> Option<Failure> {
        let (answer, answered) = oneshot::channel();
        self.charges.send(Charge { spent, answer }).await.ok()?;
        answered.await.ok().flatten()
    }
}
