//! Channels between a front end and its session, which carry events to the front end and commands to the session, in
//! order.

use super::interface::{Start, StartupQuestion};
use crate::protocol::Event;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Maximum time for delivering the last commands and queries when aye exits.
const LAST_COMMANDS: Duration = Duration::from_secs(1);

/// Channels for the dialogs shown before the session starts, and for the start itself.
pub(crate) struct StartupChannels {
    pub start: Option<oneshot::Receiver<Start>>,
    pub ahead: mpsc::UnboundedReceiver<StartupQuestion>,
}

pub(crate) enum StartupEvent {
    /// The session has started, or `None` if loading failed.
    Start(Option<Start>),
    Ahead(StartupQuestion),
}

impl StartupChannels {
    pub(crate) fn new(start: oneshot::Receiver<Start>, ahead: mpsc::UnboundedReceiver<StartupQuestion>) -> Self {
        Self { start: Some(start), ahead }
    }

    pub(crate) async fn next(&mut self) -> StartupEvent {
        let started = async {
            match &mut self.start {
                Some(start) => start.await.ok(),
                None => std::future::pending().await,
            }
        };
        let ahead = async {
            match self.ahead.recv().await {
                Some(ahead) => ahead,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            start = started => {
                self.start = None;
                StartupEvent::Start(start)
            }
            ahead = ahead => StartupEvent::Ahead(ahead),
        }
    }
}

/// Receiver of session events, which are received in batches.
pub(crate) struct EventReceiver {
    events: mpsc::UnboundedReceiver<Event>,
    is_open: bool,
    /// Maximum number of events in a batch.
    most: usize,
    batch: Vec<Event>,
}

impl EventReceiver {
    pub(crate) fn new(events: mpsc::UnboundedReceiver<Event>, most: usize) -> Self {
        Self { events, is_open: true, most, batch: Vec::new() }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Waits for the next batch of events. Returns `false` once the channel has closed; further calls then never
    /// return.
    pub(crate) async fn next(&mut self) -> bool {
        if !self.is_open {
            return std::future::pending().await;
        }
        self.is_open = self.events.recv_many(&mut self.batch, self.most).await > 0;
        self.is_open
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.batch)
    }
}

/// Queue of commands or queries that have yet to be delivered.
pub(crate) struct CommandQueue<T> {
    taken: mpsc::Sender<T>,
    waiting: VecDeque<T>,
}

impl<T> CommandQueue<T> {
    pub(crate) fn new(taken: mpsc::Sender<T>) -> Self {
        Self { taken, waiting: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, one: T) {
        self.waiting.push_back(one);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits until one item has been delivered. This method is cancel safe: if it is cancelled, no item is lost.
    pub(crate) async fn send_one(&mut self) {
        if self.waiting.is_empty() {
            return std::future::pending().await;
        }
        match self.taken.reserve().await {
            Ok(permit) => {
                if let Some(one) = self.waiting.pop_front() {
                    permit.send(one);
                }
            }
            // The receiver was dropped.
            Err(_) => std::future::pending().await,
        }
    }

    /// Delivers all remaining items, but gives up after [`LAST_COMMANDS`], because the receiver may be stuck.
    pub(crate) async fn send_all(&mut self) {
        let all = async {
            while let Some(one) = self.waiting.pop_front() {
                if self.taken.send(one).await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(LAST_COMMANDS, all).await;
    }
}
