//! Connection between a client and its session. Passes lines to the state machine and events to the client, until the
//! connection or the session ends.

use super::session_open::{OpenSession, SessionFactory};
use super::transport::ServeClient;
use crate::agent;
use crate::host::context::AppContext;
use crate::host::exit::Exit;
use crate::host::query::QueryHandler;
use crate::host::session_builder::StartedSession;
use crate::protocol::{Event, SessionCommand};
use crate::serve::{BoundedLine, ClientConnection, ConnectionAction, FaultCode, OpeningRequest, RpcError};
use crate::store::Store;
use crate::sys::signals::is_hangup_ignored;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum time that the next line is delayed to wait for the response to an earlier request.
const RESPONSE_WAIT: Duration = Duration::from_secs(1);
/// Maximum number of events handled before the next request.
const EVENTS_AT_ONCE: usize = 256;
/// Maximum time that a session has to save its state after its client has disconnected.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// Reason the connection with a client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// The client called `Shutdown`, or the session ended on its own.
    Done,
    /// The client disconnected. `worked` indicates whether a task was running.
    Gone {
        worked: bool,
    },
    Signalled(Exit),
}

/// Signals that terminate the process.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Terminal hang-up signal, which a process started with `nohup` ignores.
    hang_up: Option<Signal>,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    pub(crate) async fn next(&mut self) -> Exit {
        let hung_up = async {
            match &mut self.hang_up {
                Some(hang_up) => drop(hang_up.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            () = hung_up => Exit::Terminated,
        }
    }
}

/// A running session.
struct ServedSession {
    commands: mpsc::Sender<SessionCommand>,
    events: mpsc::UnboundedReceiver<Event>,
    /// Whether the client can accept more streamed text.
    room: watch::Sender<bool>,
    session: StartedSession,
    /// Store, context and event sender for queries that do not go through the session.
    look_ups: (Store, AppContext, mpsc::WeakUnboundedSender<Event>),
}

pub(crate) struct Host {
    client: ServeClient,
    opener: SessionFactory,
    desk: ClientConnection,
    run: Option<ServedSession>,
    opening: Option<JoinHandle<Result<Box<OpenSession>, RpcError>>>,
    /// Commands that have not yet been sent to the session.
    commands: VecDeque<SessionCommand>,
    ends: bool,
    /// Whether the client has closed its input.
    deaf: bool,
}

/// The next input to handle.
enum ConnectionInput {
    Line(Option<BoundedLine>),
    Event(Option<Event>),
    Opened(Result<Box<OpenSession>, RpcError>),
    Given,
    Room,
    Soon,
    Gone,
    Signalled(Exit),
}

impl Host {
    pub(crate) fn new(client: ServeClient, opener: SessionFactory) -> Self {
        let (desk, commands) = (ClientConnection::default(), VecDeque::new());
        Self { client, opener, desk, run: None, opening: None, commands, ends: false, deaf: false }
    }

    /// Serves the client until it disconnects or shuts down the process, or until a signal arrives.
    pub(crate) async fn run(mut self, signals: &mut Signals) -> SessionEnd {
        let mut soon = None;
        let left = loop {
            if self.ends {
                break SessionEnd::Done;
            }
            let waits = self.desk.is_answer_due();
            let due = waits.then(|| *soon.get_or_insert_with(|| Instant::now() + RESPONSE_WAIT));
            if !waits {
                soon = None;
            }
            match self.next(signals, due).await {
                ConnectionInput::Line(Some(line)) => {
                    self.drain_events();
                    let acts = self.desk.line(line);
                    self.perform(acts);
                    soon = None;
                }
                // The end of the input counts as a disconnect, because nobody can make decisions.
                ConnectionInput::Line(None) => self.deaf = true,
                ConnectionInput::Event(Some(event)) => {
                    let acts = self.desk.event(event);
                    self.perform(acts);
                }
                ConnectionInput::Event(None) => self.on_session_end().await,
                ConnectionInput::Opened(outcome) => self.on_opened(outcome),
                ConnectionInput::Given | ConnectionInput::Soon => {}
                ConnectionInput::Room => {
                    let has_room = self.client.out.has_room();
                    if let Some(run) = &self.run {
                        run.room.send_replace(has_room);
                    }
                }
                ConnectionInput::Gone => break SessionEnd::Gone { worked: self.desk.is_running() },
                ConnectionInput::Signalled(exit) => break SessionEnd::Signalled(exit),
            }
        };
        Box::pin(self.end(left)).await;
        left
    }

    /// Handles up to `EVENTS_AT_ONCE` events that precede a request.
    fn drain_events(&mut self) {
        for _ in 0..EVENTS_AT_ONCE {
            let Some(Ok(event)) = self.run.as_mut().map(|run| run.events.try_recv()) else { return };
            let acts = self.desk.event(event);
            self.perform(acts);
        }
    }

    async fn next(&mut self, signals: &mut Signals, due: Option<Instant>) -> ConnectionInput {
        let has_room = self.client.out.has_room();
        let now = Instant::now();
        let early = due.is_some_and(|due| due > now);
        let takes = self.desk.can_take_line() && has_room && !early && !self.deaf;
        // Respond to the last lines before handling the disconnect.
        let leaves = self.deaf && self.opening.is_none() && !early;
        let told_room = self.run.as_ref().is_none_or(|run| *run.room.borrow() == has_room);
        if leaves {
            return ConnectionInput::Gone;
        }
        if !told_room {
            return ConnectionInput::Room;
        }
        let (events, give) = match &mut self.run {
            Some(ServedSession { events, commands, .. }) => (Some(events), Some(&*commands)),
            None => (None, None),
        };
        let opening = self.opening.as_mut();
        let waits_to_be_given = !self.commands.is_empty();
        let next = tokio::select! {
            event = async { match events { Some(events) => events.recv().await, None => std::future::pending().await } } => ConnectionInput::Event(event),
            permit = async { match give { Some(give) => give.reserve().await, None => std::future::pending().await } }, if waits_to_be_given => {
                match permit {
                    Ok(permit) => {
                        if let Some(command) = self.commands.pop_front() {
                            permit.send(command);
                        }
                    }
                    // The session is ending, and its last events report the end.
                    Err(_) => self.commands.clear(),
                }
                ConnectionInput::Given
            }
            line = self.client.lines.recv(), if takes => ConnectionInput::Line(line),
            opened = async { match opening { Some(opening) => opening.await, None => std::future::pending().await } } => {
                ConnectionInput::Opened(opened.unwrap_or_else(|error| {
                    Err(RpcError::new(FaultCode::Internal, format!("cannot open the session: {error}")))
                }))
            }
            () = self.client.out.wait_for_room_change(has_room) => ConnectionInput::Room,
            () = sleep_until(due.unwrap_or(now)), if early => ConnectionInput::Soon,
            () = self.client.out.wait_for_disconnect() => ConnectionInput::Gone,
            exit = signals.next() => ConnectionInput::Signalled(exit),
        };
        if matches!(next, ConnectionInput::Opened(_)) {
            self.opening = None;
        }
        next
    }

    fn perform(&mut self, acts: Vec<ConnectionAction>) {
        for act in acts {
            match act {
                ConnectionAction::Send(message) => self.client.out.send(&message),
                ConnectionAction::Open(asked) => self.open(*asked),
                ConnectionAction::Do(command) => self.commands.push_back(command.into()),
                ConnectionAction::DoInHost(command) => self.commands.push_back(command.into()),
                ConnectionAction::Ask(query) => {
                    if let Some(run) = &self.run {
                        run.session.queries().answer(query);
                    }
                }
                ConnectionAction::LookUp(request) => {
                    if let Some(run) = &self.run
                        && let Some(events) = run.look_ups.2.upgrade()
                    {
                        QueryHandler::new(run.look_ups.0.clone(), &run.look_ups.1, events).run(request);
                    }
                }
                ConnectionAction::End => self.ends = true,
            }
        }
    }

    fn open(&mut self, asked: OpeningRequest) {
        let (opener, runtime) = (self.opener.clone(), tokio::runtime::Handle::current());
        self.opening = Some(tokio::task::spawn_blocking(move || opener.open(asked, &runtime)));
    }

    fn on_opened(&mut self, outcome: Result<Box<OpenSession>, RpcError>) {
        let opened = outcome.map(|ready| {
            let OpenSession { prepared, opened } = *ready;
            let (commands, receive_commands) = mpsc::channel(agent::CHANNEL_DEPTH);
            let (events, receive_events) = mpsc::unbounded_channel();
            let (room, has_room) = watch::channel(true);
            // With a strong sender, the event channel would stay open after the end of the session.
            let look_ups = (prepared.session().store.clone(), prepared.context().clone(), events.downgrade());
            let session = prepared.start(receive_commands, events, Some(has_room));
            self.run = Some(ServedSession { commands, events: receive_events, room, session, look_ups });
            opened
        });
        let acts = self.desk.on_opened(opened);
        self.perform(acts);
    }

    /// Handles the end of the session.
    async fn on_session_end(&mut self) {
        if let Some(ServedSession { mut session, .. }) = self.run.take() {
            session.wait_until_ended().await;
            session.close().await;
        }
        self.commands.clear();
        let acts = self.desk.on_session_end();
        self.perform(acts);
    }

    /// Saves the session, reports its end to a client that is still connected, and releases all resources.
    async fn end(mut self, left: SessionEnd) {
        if let Some(opening) = self.opening.take()
            && let Ok(Ok(ready)) = opening.await
        {
            // The session is no longer needed.
            ready.prepared.close().await;
        }
        if let Some(run) = self.run.take() {
            let ServedSession { commands, mut events, room, mut session, .. } = run;
            // Streaming must no longer wait for a reader.
            room.send_replace(true);
            // Dropping the sender ends the session: it stops running work and saves the outcome.
            drop(commands);
            let farewell = async {
                while let Some(event) = events.recv().await {
                    if !self.client.out.is_gone() {
                        let acts = self.desk.event(event);
                        self.perform(acts);
                    }
                }
                session.wait_until_ended().await;
                // A client that closed its sending half may still receive messages.
                let acts = self.desk.on_session_end();
                self.perform(acts);
            };
            if timeout(SHUTDOWN_TIMEOUT, farewell).await.is_err() {
                tracing::warn!(?left, "the session did not end in time");
            }
            session.close().await;
        }
        self.client.out.close().await;
    }
}
