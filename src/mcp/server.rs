//! Configured server with its state and tools. At most one attempt to connect to it is made at a time.

use super::connect::{HandshakeMode, connect};
use super::connection::Connection;
use super::failure::{ConnectFailure, one_line, unreachable};
use super::limits::{LISTING_PAUSE, TERMINATE_TIMEOUT};
use super::tools::ToolListing;
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

/// Reason shown for a server whose connection was closed.
const GONE: &str = "connection closed";

type Outcome = Result<Arc<Connection>, RemoteError>;
type Attempt = Shared<BoxFuture<'static, Outcome>>;

/// Notifies watchers that something has changed.
pub(super) type ChangeNotifier = Arc<watch::Sender<u64>>;

pub(super) struct Server {
    pub spec: Arc<Spec>,
    wires: McpDeps,
    bell: ChangeNotifier,
    held: Mutex<ServerRecord>,
}

struct ServerRecord {
    phase: ServerPhase,
    /// Reason why the policy disables the server, or `None` if it does not.
    unlisted: Option<String>,
    /// How the server differs from the one that was approved, or `None` if it does not differ.
    not_approved: Option<String>,
    /// The server's tools, or `None` if the server has never been queried.
    listed: Option<Arc<ToolListing>>,
    greeting: HandshakeMode,
    /// Token for the current connection and attempts to connect. It is cancelled once they are no longer needed.
    run: CancellationToken,
    /// Task that writes the tool cache, which the session waits for when it ends.
    keeping: Option<JoinHandle<()>>,
    /// Whether the session has ended or the server has been removed.
    ended: bool,
}

enum ServerPhase {
    Idle,
    Starting(Attempt),
    Connected(Arc<Connection>),
    NeedsLogin,
    Unreachable(String),
}

impl Server {
    pub(super) fn new(spec: Spec, wires: McpDeps, bell: ChangeNotifier) -> Arc<Self> {
        let recalled = wires.known.as_deref().filter(|_| spec.off.is_none()).and_then(|known| tool_cache::recall(known, &spec));
        let (listed, greeting) = match recalled {
            Some((listed, shakes_hands)) => {
                (Some(Arc::new(listed)), if shakes_hands { HandshakeMode::Handshake } else { HandshakeMode::Either })
            }
            None => (None, HandshakeMode::Either),
        };
        let held = ServerRecord {
            phase: ServerPhase::Idle,
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

    fn lock(&self) -> MutexGuard<'_, ServerRecord> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify_change(&self) {
        self.bell.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns the reason why the server is disabled, or `None` if it is enabled.
    fn disabled_reason<'a>(&'a self, held: &'a ServerRecord) -> Option<&'a str> {
        self.spec.off.as_deref().or(held.not_approved.as_deref()).or(held.unlisted.as_deref())
    }

    fn is_off(&self, why: &str) -> RemoteError {
        RemoteError::Unreachable { message: format!("the server `{}` is off: {why}", self.spec.name) }
    }

    pub(super) fn status(&self) -> ServerStatus {
        let held = self.lock();
        let state = match (self.disabled_reason(&held), &held.phase) {
            (Some(why), _) => ServerState::Off { why: why.to_owned() },
            (None, ServerPhase::Idle) => ServerState::Asleep,
            (None, ServerPhase::Starting(_)) => ServerState::Starting,
            // The connection has ended, but its last output is still being read.
            (None, ServerPhase::Connected(connection)) if connection.is_gone() => {
                ServerState::Unreachable { why: GONE.to_owned() }
            }
            (None, ServerPhase::Connected(_)) => ServerState::Ready,
            (None, ServerPhase::NeedsLogin) => ServerState::NeedsLogin,
            (None, ServerPhase::Unreachable(why)) => ServerState::Unreachable { why: why.clone() },
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
            notes: Self::known_tools(&held),
        }
    }

    pub(super) fn tools(&self) -> Arc<[RemoteTool]> {
        let held = self.lock();
        match &held.listed {
            Some(listed) if self.disabled_reason(&held).is_none() => Arc::clone(&listed.tools),
            _ => Arc::default(),
        }
    }

    pub(super) fn notes(&self) -> Vec<String> {
        Self::known_tools(&self.lock())
    }

    fn known_tools(held: &ServerRecord) -> Vec<String> {
        let connection = match &held.phase {
            ServerPhase::Connected(connection) => connection.notes(),
            ServerPhase::Idle | ServerPhase::Starting(_) | ServerPhase::NeedsLogin | ServerPhase::Unreachable(_) => Vec::new(),
        };
        connection.into_iter().chain(held.listed.iter().flat_map(|listed| listed.notes.clone())).collect()
    }

    /// Returns the name and version that the server reports, if it is connected.
    pub(super) fn identity(&self) -> Option<Identity> {
        Some(self.current_connection()?.identity())
    }

    /// Queries the server, unless its tools are known or an attempt has already been made.
    pub(super) fn discover(self: &Arc<Self>) {
        let mut held = self.lock();
        if self.disabled_reason(&held).is_none() && held.listed.is_none() && matches!(held.phase, ServerPhase::Idle) {
            drop(self.attempt(&mut held));
        }
    }

    /// Returns the current connection. If there is none, waits for the current attempt to connect or starts a new one.
    pub(super) async fn connection(self: &Arc<Self>) -> Outcome {
        let attempt = {
            let mut held = self.lock();
            if let Some(why) = self.disabled_reason(&held) {
                return Err(self.is_off(why));
            }
            match &held.phase {
                ServerPhase::Connected(connection) if !connection.is_gone() => return Ok(Arc::clone(connection)),
                ServerPhase::Starting(attempt) => attempt.clone(),
                _ => self.attempt(&mut held),
            }
        };
        attempt.await
    }

    /// Returns the current connection, if there is one, without trying to connect.
    pub(super) fn current_connection(&self) -> Option<Arc<Connection>> {
        match &self.lock().phase {
            ServerPhase::Connected(connection) if !connection.is_gone() => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Marks the server as unreachable after its connection caused a request to fail.
    pub(super) fn mark_unavailable(self: &Arc<Self>, connection: &Arc<Connection>, why: &str) {
        let run = {
            let mut held = self.lock();
            if !matches!(&held.phase, ServerPhase::Connected(now) if Arc::ptr_eq(now, connection)) {
                return;
            }
            held.phase = ServerPhase::Unreachable(one_line(why));
            std::mem::replace(&mut held.run, CancellationToken::new())
        };
        run.cancel();
        self.notify_change();
        let connection = Arc::clone(connection);
        tokio::spawn(async move {
            connection.idle().await;
            connection.end().await;
        });
    }

    /// Disables the server for the given reason, or enables it if the reason is `None`. When it is disabled, calls in
    /// progress are completed before the server program exits.
    pub(super) fn set_disabled(self: &Arc<Self>, why: Option<String>) {
        let mut held = self.lock();
        if held.unlisted == why {
            return;
        }
        held.unlisted = why;
        let leaves = held.unlisted.is_some() && matches!(held.phase, ServerPhase::Starting(_) | ServerPhase::Connected(_));
        drop(held);
        self.notify_change();
        if leaves {
            tokio::spawn(Arc::clone(self).disconnect());
        } else {
            self.discover();
        }
    }

    async fn disconnect(self: Arc<Self>) {
        if let Some(connection) = self.current_connection() {
            connection.idle().await;
        }
        let is_off = self.disabled_reason(&self.lock()).is_some();
        if is_off {
            self.stop(ServerPhase::Idle).await;
        }
    }

    pub(super) fn reconnect(self: &Arc<Self>) {
        let server = Arc::clone(self);
        tokio::spawn(async move {
            server.stop(ServerPhase::Idle).await;
            let mut held = server.lock();
            // The approval will be checked again when the server is contacted.
            held.not_approved = None;
            if server.disabled_reason(&held).is_none() && matches!(held.phase, ServerPhase::Idle) {
                drop(server.attempt(&mut held));
            }
        });
    }

    /// Retires a server that was removed from the settings. No new connection is made, and the server is stopped once
    /// its calls have ended.
    pub(super) async fn retire(self: Arc<Self>) {
        self.lock().ended = true;
        let standing = self.current_connection();
        if let Some(connection) = standing {
            connection.idle().await;
        }
        self.end().await;
    }

    pub(super) async fn end(&self) {
        self.lock().ended = true;
        self.stop(ServerPhase::Idle).await;
        let keeping = self.lock().keeping.take();
        if let Some(keeping) = keeping {
            let _ = keeping.await;
        }
    }

    async fn stop(&self, next: ServerPhase) {
        let (before, run) = {
            let mut held = self.lock();
            let run = std::mem::replace(&mut held.run, CancellationToken::new());
            (std::mem::replace(&mut held.phase, next), run)
        };
        run.cancel();
        self.notify_change();
        match before {
            ServerPhase::Connected(connection) => connection.end().await,
            // A program that the attempt started ends together with the attempt.
            ServerPhase::Starting(attempt) => {
                let _ = tokio::time::timeout(TERMINATE_TIMEOUT, attempt).await;
            }
            ServerPhase::Idle | ServerPhase::NeedsLogin | ServerPhase::Unreachable(_) => {}
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
        held.phase = ServerPhase::Starting(attempt.clone());
        self.notify_change();
        attempt
    }

    async fn start(self: &Arc<Self>, greeting: HandshakeMode, run: &CancellationToken) -> Outcome {
        let outcome = self.tries(greeting).await;
        let mut held = self.lock();
        if run.is_cancelled() {
            return Err(RemoteError::Unreachable { message: format!("the connection to `{}` was closed", self.spec.name) });
        }
        let outcome = match outcome {
            Ok((connection, listed)) => {
                let connection = Arc::new(connection);
                held.phase = ServerPhase::Connected(Arc::clone(&connection));
                held.greeting = if connection.uses_handshake() { HandshakeMode::Handshake } else { HandshakeMode::Either };
                // These are set together with the tools, because a ready server must have tools.
                self.learn(&mut held, listed, connection.uses_handshake());
                drop(held);
                tokio::spawn(Arc::clone(self).watch_tools(Arc::clone(&connection), run.clone()));
                Ok(connection)
            }
            Err(ConnectFailure::NeedsLogin) => {
                held.phase = ServerPhase::NeedsLogin;
                drop(held);
                Err(RemoteError::NeedsLogin { server: self.spec.name.clone() })
            }
            Err(ConnectFailure::NotApproved(why)) => {
                let error = self.is_off(&why);
                held.phase = ServerPhase::Idle;
                held.not_approved = Some(why);
                drop(held);
                Err(error)
            }
            Err(ConnectFailure::OlderProtocol(why) | ConnectFailure::Final(why) | ConnectFailure::Temporary(why)) => {
                held.phase = ServerPhase::Unreachable(one_line(&why));
                drop(held);
                Err(unreachable(&self.spec, &why))
            }
        };
        self.notify_change();
        outcome
    }

    async fn tries(&self, mut greeting: HandshakeMode) -> Result<(Connection, ToolListing), ConnectFailure> {
        let mut attempts = 0;
        let mut greeted_otherwise = false;
        let mut delay = self.spec.retry_delay;
        loop {
            let limit = self.spec.start_timeout;
            let failure = match tokio::time::timeout(limit, self.once(greeting)).await {
                Ok(Ok(up)) => return Ok(up),
                Ok(Err(failure)) => failure,
                // Another attempt would take as long.
                Err(_) => return Err(ConnectFailure::Final(format!("not ready within {} s", limit.as_secs()))),
            };
            match (failure, greeting) {
                (ConnectFailure::OlderProtocol(_), HandshakeMode::Either) if !greeted_otherwise => {
                    greeting = HandshakeMode::Handshake;
                    greeted_otherwise = true;
                }
                (ConnectFailure::Final(_), HandshakeMode::Handshake) if !greeted_otherwise => {
                    greeting = HandshakeMode::Either;
                    greeted_otherwise = true;
                }
                (ConnectFailure::Temporary(why) | ConnectFailure::OlderProtocol(why), _)
                    if attempts < self.spec.retry_attempts =>
                {
                    tracing::debug!(server = %self.spec.name, %why, "retrying the connection");
                    tokio::time::sleep(delay).await;
                    delay = delay.saturating_mul(2);
                    attempts += 1;
                }
                (failure, _) => return Err(failure),
            }
        }
    }

    async fn once(&self, greeting: HandshakeMode) -> Result<(Connection, ToolListing), ConnectFailure> {
        // Check the approval right before connecting, because the server may have changed since the session started.
        if let Some(approval) = self.wires.approval.as_ref().filter(|_| self.spec.needs_approval()) {
            approval.verify(&self.spec).await.map_err(ConnectFailure::NotApproved)?;
        }
        let connection = connect(&self.spec, &self.wires, greeting).await?;
        match connection.tools().await {
            Ok(listed) => Ok((connection, listed)),
            Err(error) => {
                let last_words = connection.output_tail().await;
                connection.end().await;
                Err(ConnectFailure::from_listing_error(&error).with_suffix(&last_words))
            }
        }
    }

    fn learn(self: &Arc<Self>, held: &mut ServerRecord, listed: ToolListing, shakes_hands: bool) {
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
                // The latest list must be the last one that is written.
                let listed = server.lock().listed.clone();
                if let Some(listed) = listed {
                    tool_cache::keep(&directory, &server.spec, &listed, shakes_hands);
                }
            }));
        }
        self.notify_change();
    }

    /// Watches for changes to the server's tools while it is connected, and reports when the connection ends.
    async fn watch_tools(self: Arc<Self>, connection: Arc<Connection>, run: CancellationToken) {
        let listening = async {
            let listens = !connection.uses_handshake()
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
                // This limits how often a server can trigger the request.
                tokio::time::sleep(LISTING_PAUSE).await;
                match tokio::time::timeout(self.spec.start_timeout, connection.tools()).await {
                    Ok(Ok(listed)) => self.learn(&mut self.lock(), listed, connection.uses_handshake()),
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
        let last_words = connection.output_tail().await;
        connection.end().await;
        let mut held = self.lock();
        if matches!(&held.phase, ServerPhase::Connected(now) if Arc::ptr_eq(now, &connection)) {
            held.phase = ServerPhase::Unreachable(format!("{GONE}{last_words}"));
            drop(held);
            self.notify_change();
        }
    }
}
