//! What connects a front end to the session behind it: what comes in, and what goes out in its order.

use super::interface::{Start, StartupQuestion};
use crate::protocol::Event;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// For the last commands and queries to be taken.
const LAST_COMMANDS: Duration = Duration::from_secs(1);

/// What there is before there is a session, and what it begins with.
pub struct Startup {
    pub start: Option<oneshot::Receiver<Start>>,
    pub ahead: mpsc::UnboundedReceiver<StartupQuestion>,
}

pub enum StartupEvent {
    /// Nothing where loading failed.
    Start(Option<Start>),
    Ahead(StartupQuestion),
}

impl Startup {
    pub fn new(start: oneshot::Receiver<Start>, ahead: mpsc::UnboundedReceiver<StartupQuestion>) -> Self {
        Self { start: Some(start), ahead }
    }

    pub async fn next(&mut self) -> StartupEvent {
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

/// What happens in the session.
pub struct EventReceiver {
    events: mpsc::UnboundedReceiver<Event>,
    is_open: bool,
    /// Taken in at once, at most.
    most: usize,
    batch: Vec<Event>,
}

impl EventReceiver {
    pub fn new(events: mpsc::UnboundedReceiver<Event>, most: usize) -> Self {
        Self { events, is_open: true, most, batch: Vec::new() }
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Waits for events; whether there are any, or will never be.
    pub async fn next(&mut self) -> bool {
        if !self.is_open {
            return std::future::pending().await;
        }
        self.is_open = self.events.recv_many(&mut self.batch, self.most).await > 0;
        self.is_open
    }

    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.batch)
    }
}

/// Commands or queries that have not been taken yet.
pub struct CommandQueue<T> {
    taken: mpsc::Sender<T>,
    waiting: VecDeque<T>,
}

impl<T> CommandQueue<T> {
    pub fn new(taken: mpsc::Sender<T>) -> Self {
        Self { taken, waiting: VecDeque::new() }
    }

    pub fn push(&mut self, one: T) {
        self.waiting.push_back(one);
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Until one of them is taken; nothing is lost where this is not waited for.
    pub async fn send_one(&mut self) {
        if self.waiting.is_empty() {
            return std::future::pending().await;
        }
        match self.taken.reserve().await {
            Ok(permit) => {
                if let Some(one) = self.waiting.pop_front() {
                    permit.send(one);
                }
            }
            // Nobody takes them any more.
            Err(_) => std::future::pending().await,
        }
    }

    /// At the end. Whoever takes them may be gone or stuck: leaving does not wait for it.
    pub async fn send_all(&mut self) {
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
