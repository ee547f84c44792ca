//! Configured server: its state, its tools, and at most one connection attempt at a time.

use super::connect::{HandshakeMode, connect};
use super::connection::Connection;
use super::failure::{Failure, one_line, unreachable};
use super::limits::{ENDING, LISTING_PAUSE};
use super::tools::Listed;
use super::{Identity, McpDeps, Reach, Spec, tool_cache};
use crate::ports::{BoxFuture, RemoteError, RemoteTool};
use crate::protocol::{ServerState, ServerStatus};
use futures_util::FutureExt;
use futures_util::future::Shared;
use rmcp::model::SubscriptionFilter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Reason shown for a server whose connection ended.
const GONE: &str = "connection closed";

type Outcome = Result<Arc<Connection>, RemoteError>;
type Attempt = Shared<BoxFuture<'static, Outcome>>;

/// Notifies watchers of any change.
pub(super) type Bell = Arc<watch::Sender<u64>>;

pub(super) struct Server {
    pub spec: Arc<Spec>,
    wires: McpDeps,
    bell: Bell,
    held: Mutex<ServerRecord>,
}

struct ServerRecord {
    phase: Phase,
    /// Reason why the policy disables it, if so.
    unlisted: Option<String>,
    /// Difference from the approved server, if there is one.
    not_approved: Option<String>,
    /// Tools of the server; `None` if it was never queried.
    listed: Option<Arc<Listed>>,
    greeting: HandshakeMode,
    /// Token of the current attempts and connection; cancelled when they are no longer wanted.
    run: CancellationToken,
    /// Task that writes the tool cache; awaited at the end.
    keeping: Option<JoinHandle<()>>,
    /// Whether the session has ended.
    ended: bool,
}

enum Phase {
    Asleep,
    Starting(Attempt),
    Up(Arc<Connection>),
    NeedsLogin,
    Unreachable(String),
}

impl Server {
    pub(super) fn new(spec: Spec, wires: McpDeps, bell: Bell) -> Arc<Self> {
        let recalled = wires.known.as_deref().filter(|_| spec.off.is_none()).and_then(|known| tool_cache::recall(known, &spec));
        let (listed, greeting) = match recalled {
            Some((listed, shakes_hands)) => {
                (Some(Arc::new(listed)), if shakes_hands { HandshakeMode::Handshake } else { HandshakeMode::Either })
            }
            None => (None, HandshakeMode::Either),
        };
        let held = ServerRecord {
            phase: Phase::Asleep,
            unlisted: None,
            not_approved: None,
            listed,
            greeting,
            run: CancellationToken::new(),
            keeping: None,
            ended: false,
        };
        Arc::new(Self { spec: Arc::new(spec), wires, bell, held: Mutex::new(held) })
    }

    fn held(&self) -> MutexGuard<'_, ServerRecord> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        self.bell.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns why the server is disabled, if so.
    fn off<'a>(&'a self, held: &'a ServerRecord) -> Option<&'a str> {
        self.spec.off.as_deref().or(held.not_approved.as_deref()).or(held.unlisted.as_deref())
    }

    fn is_off(&self, why: &str) -> RemoteError {
        RemoteError::Unreachable { message: format!("the server `{}` is off: {why}", self.spec.name) }
    }

    pub(super) fn status(&self) -> ServerStatus {
        let held = self.held();
        let state = match (self.off(&held), &held.phase) {
            (Some(why), _) => ServerState::Off { why: why.to_owned() },
            (None, Phase::Asleep) => ServerState::Asleep,
            (None, Phase::Starting(_)) => ServerState::Starting,
            // The connection has ended, and its last output is still being read.
            (None, Phase::Up(connection)) if connection.is_gone() => ServerState::Unreachable { why: GONE.to_owned() },
            (None, Phase::Up(_)) => ServerState::Ready,
            (None, Phase::NeedsLogin) => ServerState::NeedsLogin,
            (None, Phase::Unreachable(why)) => ServerState::Unreachable { why: why.clone() },
        };
        let offered = held.listed.as_ref().map_or(0, |listed| listed.tools.len() as u64);
        let reached_by = match &self.spec.reach {
            Reach::Program { argv, .. } => argv.join(" "),
            Reach::Http { url, .. } => url.clone(),
        };
        ServerStatus {
            name: self.spec.name.clone(),
            reached_by,
            state,
            tools: offered,
            offered,
            of_project: self.spec.of_project,
            notes: Self::known(&held),
        }
    }

    pub(super) fn tools(&self) -> Arc<[RemoteTool]> {
        let held = self.held();
        match &held.listed {
            Some(listed) if self.off(&held).is_none() => Arc::clone(&listed.tools),
            _ => Arc::default(),
        }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        Self::known(&self.held())
    }

    fn known(held: &ServerRecord) -> Vec<String> {
        let connection = match &held.phase {
            Phase::Up(connection) => connection.notes(),
            Phase::Asleep | Phase::Starting(_) | Phase::NeedsLogin | Phase::Unreachable(_) => Vec::new(),
        };
        connection.into_iter().chain(held.listed.iter().flat_map(|listed| listed.notes.clone())).collect()
    }

    /// Returns the identity that the server reports, while it is connected.
    pub(super) fn identity(&self) -> Option<Identity> {
        Some(self.standing()?.identity())
    }

    /// Queries the server if its tools are unknown and no attempt was made.
    pub(super) fn discover(self: &Arc<Self>) {
        let mut held = self.held();
        if self.off(&held).is_none() && held.listed.is_none() && matches!(held.phase, Phase::Asleep) {
            drop(self.attempt(&mut held));
        }
    }

    /// Returns the current connection, or the result of the current or a new attempt.
    pub(super) async fn connection(self: &Arc<Self>) -> Outcome {
        let attempt = {
            let mut held = self.held();
            if let Some(why) = self.off(&held) {
                return Err(self.is_off(why));
            }
            match &held.phase {
                Phase::Up(connection) if !connection.is_gone() => return Ok(Arc::clone(connection)),
                Phase::Starting(attempt) => attempt.clone(),
                _ => self.attempt(&mut held),
            }
        };
        attempt.await
    }

    /// Returns the current connection, without connecting.
    pub(super) fn standing(&self) -> Option<Arc<Connection>> {
        match &self.held().phase {
            Phase::Up(connection) if !connection.is_gone() => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Marks the server as unavailable after a request failed because it is down.
    pub(super) fn lost(self: &Arc<Self>, connection: &Arc<Connection>, why: &str) {
        let run = {
            let mut held = self.held();
            if !matches!(&held.phase, Phase::Up(now) if Arc::ptr_eq(now, connection)) {
                return;
            }
            held.phase = Phase::Unreachable(one_line(why));
            std::mem::replace(&mut held.run, CancellationToken::new())
        };
        run.cancel();
        self.ring();
        let connection = Arc::clone(connection);
        tokio::spawn(async move {
            connection.idle().await;
            connection.end().await;
        });
    }

    /// Disables the server for this reason, or enables it. Running calls continue; its program exits afterwards.
    pub(super) fn keep_off(self: &Arc<Self>, why: Option<String>) {
        let mut held = self.held();
        if held.unlisted == why {
            return;
        }
        held.unlisted = why;
        let leaves = held.unlisted.is_some() && matches!(held.phase, Phase::Starting(_) | Phase::Up(_));
        drop(held);
        self.ring();
        if leaves {
            tokio::spawn(Arc::clone(self).leave());
        } else {
            self.discover();
        }
    }

    async fn leave(self: Arc<Self>) {
        if let Some(connection) = self.standing() {
            connection.idle().await;
        }
        let is_off = self.off(&self.held()).is_some();
        if is_off {
            self.stop(Phase::Asleep).await;
        }
    }

    pub(super) fn reconnect(self: &Arc<Self>) {
        let server = Arc::clone(self);
        tokio::spawn(async move {
            server.stop(Phase::Asleep).await;
            let mut held = server.held();
            // The approval is checked again.
            held.not_approved = None;
            if server.off(&held).is_none() && matches!(held.phase, Phase::Asleep) {
                drop(server.attempt(&mut held));
            }
        });
    }

    /// Retires a server whose entry was removed: it is not connected again, and ends once its calls have.
    pub(super) async fn retire(self: Arc<Self>) {
        self.held().ended = true;
        let standing = self.standing();
        if let Some(connection) = standing {
            connection.idle().await;
        }
        self.end().await;
    }

    pub(super) async fn end(&self) {
        self.held().ended = true;
        self.stop(Phase::Asleep).await;
        let keeping = self.held().keeping.take();
        if let Some(keeping) = keeping {
            let _ = keeping.await;
        }
    }

    async fn stop(&self, next: Phase) {
        let (before, run) = {
            let mut held = self.held();
            let run = std::mem::replace(&mut held.run, CancellationToken::new());
            (std::mem::replace(&mut held.phase, next), run)
        };
        run.cancel();
        self.ring();
        match before {
            Phase::Up(connection) => connection.end().await,
            // A program started by the attempt ends with it.
            Phase::Starting(attempt) => {
                let _ = tokio::time::timeout(ENDING, attempt).await;
            }
            Phase::Asleep | Phase::NeedsLogin | Phase::Unreachable(_) => {}
        }
    }

    fn attempt(self: &Arc<Self>, held: &mut ServerRecord) -> Attempt {
        let gone = RemoteError::Unreachable { message: format!("the connection to `{}` was closed", self.spec.name) };
        if held.ended {
            return std::future::ready(Err(gone)).boxed().shared();
        }
        let (done, outcome) = oneshot::channel();
        let (server, run, greeting) = (Arc::clone(self), held.run.clone(), held.greeting);
        tokio::spawn(async move {
            let outcome = tokio::select! {
                outcome = server.start(greeting, &run) => outcome,
                () = run.cancelled() => return,
            };
            let _ = done.send(outcome);
        });
        let attempt = async move { outcome.await.unwrap_or(Err(gone)) }.boxed().shared();
        held.phase = Phase::Starting(attempt.clone());
        self.ring();
        attempt
    }

    async fn start(self: &Arc<Self>, greeting: HandshakeMode, run: &CancellationToken) -> Outcome {
        let outcome = self.tries(greeting).await;
        let mut held = self.held();
        if run.is_cancelled() {
            return Err(RemoteError::Unreachable { message: format!("the connection to `{}` was closed", self.spec.name) });
        }
        let outcome = match outcome {
            Ok((connection, listed)) => {
                let connection = Arc::new(connection);
                held.phase = Phase::Up(Arc::clone(&connection));
                held.greeting = if connection.shakes_hands() { HandshakeMode::Handshake } else { HandshakeMode::Either };
                // Set in the same step, because a ready server has tools.
                self.learn(&mut held, listed, connection.shakes_hands());
                drop(held);
                tokio::spawn(Arc::clone(self).keep_up(Arc::clone(&connection), run.clone()));
                Ok(connection)
            }
            Err(Failure::NeedsLogin) => {
                held.phase = Phase::NeedsLogin;
                drop(held);
                Err(RemoteError::NeedsLogin { server: self.spec.name.clone() })
            }
            Err(Failure::NotApproved(why)) => {
                let error = self.is_off(&why);
                held.phase = Phase::Asleep;
                held.not_approved = Some(why);
                drop(held);
                Err(error)
            }
            Err(Failure::Older(why) | Failure::Final(why) | Failure::Passing(why)) => {
                held.phase = Phase::Unreachable(one_line(&why));
                drop(held);
                Err(unreachable(&self.spec, &why))
            }
        };
        self.ring();
        outcome
    }

    async fn tries(&self, mut greeting: HandshakeMode) -> Result<(Connection, Listed), Failure> {
        let mut attempts = 0;
        let mut greeted_otherwise = false;
        let mut delay = self.spec.retry_delay;
        loop {
            let limit = self.spec.start_timeout;
            let failure = match tokio::time::timeout(limit, self.once(greeting)).await {
                Ok(Ok(up)) => return Ok(up),
                Ok(Err(failure)) => failure,
                // Each further attempt would take as long.
                Err(_) => return Err(Failure::Final(format!("not ready within {} s", limit.as_secs()))),
            };
            match (failure, greeting) {
                (Failure::Older(_), HandshakeMode::Either) if !greeted_otherwise => {
                    greeting = HandshakeMode::Handshake;
                    greeted_otherwise = true;
                }
                (Failure::Final(_), HandshakeMode::Handshake) if !greeted_otherwise => {
                    greeting = HandshakeMode::Either;
                    greeted_otherwise = true;
                }
                (Failure::Passing(why) | Failure::Older(why), _) if attempts < self.spec.retry_attempts => {
                    tracing::debug!(server = %self.spec.name, %why, "retrying the connection");
                    tokio::time::sleep(delay).await;
                    delay = delay.saturating_mul(2);
                    attempts += 1;
                }
                (failure, _) => return Err(failure),
            }
        }
    }

    async fn once(&self, greeting: HandshakeMode) -> Result<(Connection, Listed), Failure> {
        // Checked right before the connection, because it may have changed since the session started.
        if let Some(approval) = self.wires.approval.as_ref().filter(|_| self.spec.of_project) {
            approval.holds(&self.spec).await.map_err(Failure::NotApproved)?;
        }
        let connection = connect(&self.spec, &self.wires, greeting).await?;
        match connection.tools().await {
            Ok(listed) => Ok((connection, listed)),
            Err(error) => {
                let last_words = connection.last_words().await;
                connection.end().await;
                Err(Failure::of_listing(&error).followed_by(&last_words))
            }
        }
    }

    fn learn(self: &Arc<Self>, held: &mut ServerRecord, listed: Listed, shakes_hands: bool) {
        if held.listed.as_deref() == Some(&listed) {
            return;
        }
        for note in &listed.notes {
            tracing::warn!(server = %self.spec.name, note, "problem in a tool list");
        }
        held.listed = Some(Arc::new(listed));
        if let Some(directory) = self.wires.known.clone() {
            let server = Arc::clone(self);
            held.keeping = Some(tokio::task::spawn_blocking(move || {
                // The last list must also be the last one written.
                let listed = server.held().listed.clone();
                if let Some(listed) = listed {
                    tool_cache::keep(&directory, &server.spec, &listed, shakes_hands);
                }
            }));
        }
        self.ring();
    }

    /// Watches for changed tools while the server is connected, and reports when it is not.
    async fn keep_up(self: Arc<Self>, connection: Arc<Connection>, run: CancellationToken) {
        let listening = async {
            let listens = !connection.shakes_hands()
                && connection.capabilities().tools.is_some_and(|tools| tools.list_changed == Some(true));
            let mut subscription = None;
            if listens {
                subscription = connection.peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await.ok();
            }
            loop {
                match &mut subscription {
                    Some(stream) => {
                        tokio::select! {
                            next = stream.next() => if !matches!(next, Ok(Some(_))) {
                                subscription = None;
                                continue;
                            },
                            () = connection.talk.tools_changed.notified() => {}
                        }
                    }
                    None => connection.talk.tools_changed.notified().await,
                }
                // Limits how often a server can trigger this.
                tokio::time::sleep(LISTING_PAUSE).await;
                match tokio::time::timeout(self.spec.start_timeout, connection.tools()).await {
                    Ok(Ok(listed)) => self.learn(&mut self.held(), listed, connection.shakes_hands()),
                    Ok(Err(error)) => tracing::warn!(server = %self.spec.name, %error, "cannot list the changed tools"),
                    Err(_) => tracing::warn!(server = %self.spec.name, "timed out listing the changed tools"),
                }
            }
        };
        tokio::select! {
            () = listening => {}
            () = run.cancelled() => return,
            () = connection.gone.cancelled() => {}
        }
        let last_words = connection.last_words().await;
        connection.end().await;
        let mut held = self.held();
        if matches!(&held.phase, Phase::Up(now) if Arc::ptr_eq(now, &connection)) {
            held.phase = Phase::Unreachable(format!("{GONE}{last_words}"));
            drop(held);
            self.ring();
        }
    }
}
