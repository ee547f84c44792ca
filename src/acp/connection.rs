//! Connection to an editor, which receives requests and routes them to sessions.

use super::buffers::EditorBuffers;
use super::capabilities;
use super::client::{Client, EditorCapabilities, Sanitizers};
use super::commands::Registry;
use super::host::{Host, RunningSession, SessionOpening, SessionOrigin};
use super::rpc::{INTERNAL, INVALID_PARAMS, INVALID_REQUEST, NOT_FOUND, Reply, TASK_RUNNING, invalid_params, refuse, reply};
use super::session::{ASKS, Ask, EditorSession};
use super::transport::{self, Pipes, UPDATES_OUT};
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateResponse, CancelNotification, ClientNotification, ClientRequest, CloseSessionResponse, DeleteSessionResponse,
    InitializeRequest, ListSessionsRequest, ListSessionsResponse, LoadSessionResponse, McpServer, NewSessionResponse,
    ResumeSessionResponse, SessionInfo,
};
use agent_client_protocol::{Agent, Channel, Error, on_receive_notification, on_receive_request};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Maximum number of sessions that an editor can have open.
const MAX_SESSIONS: usize = 32;
/// Maximum number of requests to open, list or end sessions that can be in progress at once.
const MAX_OPENING: usize = 8;
/// Number of sessions per page of the session list.
const PAGE: usize = 100;
/// Maximum time to wait for the last messages to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time to wait for all sessions to be saved.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// Portion of `SHUTDOWN_TIMEOUT` that is reserved for the editor to read the last messages.
const READ_GRACE: Duration = Duration::from_secs(1);
/// Number of entries in a session's request queue that are reserved for cancellations.
const FOR_CANCEL: usize = 8;

/// Everything that is needed to serve a connection.
pub(crate) struct ConnectionParts {
    pub host: Arc<dyn Host>,
    pub looks: Sanitizers,
    pub version: &'static str,
    pub registry: Registry,
}

/// Reason why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// The editor closed its end or stopped reading.
    Closed,
    Stopped,
}

/// State shared by all requests on a connection.
struct SharedState {
    front: ConnectionParts,
    room: Arc<Semaphore>,
    opening: Arc<Semaphore>,
    understands: OnceLock<EditorCapabilities>,
    sessions: Mutex<HashMap<String, mpsc::Sender<Ask>>>,
}

/// Serves an editor until it disconnects or `stop` completes. Does not return before all sessions have been saved.
pub(crate) async fn serve(
    front: ConnectionParts,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> EndReason {
    let Pipes { lines, out, written } = transport::open(input, output);
    let (near, far) = Channel::duplex();
    let (from, to) = near.into_parts();
    let room = Arc::new(Semaphore::new(UPDATES_OUT));
    let door = Arc::new(SharedState {
        front,
        room: room.clone(),
        opening: Arc::new(Semaphore::new(MAX_OPENING)),
        understands: OnceLock::new(),
        sessions: Mutex::default(),
    });
    let gone = CancellationToken::new();
    let (closed, is_closed) = oneshot::channel();
    let complain = out.clone();
    let incoming = tokio::spawn(async move {
        // The connection is closed after all sessions have sent their last messages.
        let to = transport::forward_messages(lines, to, complain).await;
        let _ = closed.send(());
        to
    });
    let outgoing = tokio::spawn(transport::write_messages(from, out, room.clone(), gone.clone()));
    let (requests, notifications, end) = (door.clone(), door.clone(), door.clone());
    let ended = Agent
        .v1()
        .name("aye")
        .on_receive_request(
            async move |request: ClientRequest, to, connection| {
                requests.clone().request(request, to, connection);
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: ClientNotification, _connection| {
                notifications.notification(notification);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(far, async move |_connection| {
            let ended = tokio::select! {
                _ = is_closed => EndReason::Closed,
                // The editor stopped reading.
                () = gone.cancelled() => EndReason::Closed,
                () = stop => EndReason::Stopped,
            };
            let mut closing = std::pin::pin!(timeout(SHUTDOWN_TIMEOUT, end.close_all()));
            if timeout(READ_GRACE, &mut closing).await.is_err() {
                // An editor that does not read must not block the shutdown.
                room.close();
                let _ = closing.await;
            }
            Ok(ended)
        })
        .await;
    incoming.abort();
    let _ = timeout(FLUSH_TIMEOUT, outgoing).await;
    let _ = timeout(FLUSH_TIMEOUT, written).await;
    ended.unwrap_or_else(|error| {
        tracing::warn!(%error, "the connection to the editor");
        EndReason::Closed
    })
}

impl SharedState {
    /// Handles a request. This must not wait, because responses to aye's own requests arrive on the same connection.
    fn request(self: Arc<Self>, request: ClientRequest, to: Reply, connection: ConnectionTo<agent_client_protocol::Client>) {
        if let ClientRequest::InitializeRequest(request) = request {
            return self.initialize(&request, to);
        }
        let Some(understands) = self.understands.get().copied() else {
            return refuse(to, INVALID_REQUEST, "call `initialize` first");
        };
        match request {
            ClientRequest::PromptRequest(request) => {
                let id = request.session_id.to_string();
                self.forward(&id, to, |to| Ask::Prompt(request, to));
            }
            ClientRequest::SetSessionModeRequest(request) => {
                let id = request.session_id.to_string();
                self.forward(&id, to, |to| Ask::Mode(request, to));
            }
            ClientRequest::SetSessionConfigOptionRequest(request) => {
                let id = request.session_id.to_string();
                self.forward(&id, to, |to| Ask::Option(request, to));
            }
            ClientRequest::ExtMethodRequest(_) => {
                let _ = to.respond_with_error(Error::method_not_found());
            }
            request => {
                let Ok(place) = self.opening.clone().try_acquire_owned() else {
                    return refuse(to, INTERNAL, "too many sessions are being opened at once; wait for the responses");
                };
                let client = Client::new(connection, self.room.clone(), understands, self.front.looks);
                tokio::spawn(async move {
                    self.spawn_request(request, to, client).await;
                    drop(place);
                });
            }
        }
    }

    fn initialize(&self, request: &InitializeRequest, to: Reply) {
        let understands = capabilities::editor_capabilities(&request.client_capabilities);
        // The capabilities of the first `initialize` remain in effect.
        let understands = *self.understands.get_or_init(|| understands);
        let ways = capabilities::auth_methods(self.front.host.auth_methods(), understands);
        reply(to, Ok(capabilities::answer(ProtocolVersion::V1, ways, self.front.version)));
    }

    fn notification(&self, notification: ClientNotification) {
        if let ClientNotification::CancelNotification(CancelNotification { session_id, .. }) = notification
            && let Some(session) = self.session(&session_id.to_string())
        {
            // If the queue is full of cancellations, another one is not needed.
            let _ = session.try_send(Ask::Cancel);
        }
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<String, mpsc::Sender<Ask>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, id: &str) -> Option<mpsc::Sender<Ask>> {
        self.sessions().get(id).cloned()
    }

    fn forward(&self, id: &str, to: Reply, ask: impl FnOnce(Reply) -> Ask) {
        let Some(session) = self.session(id) else {
            return refuse(
                to,
                NOT_FOUND,
                format!(
                    "session `{id}` is not open in this process; call `session/load` to \
                open a stored session"
                ),
            );
        };
        if session.capacity() <= FOR_CANCEL {
            return refuse(to, TASK_RUNNING, "too many pending requests for this session; wait for the responses");
        }
        // If the session has ended, dropping the request responds to it.
        drop(session.try_send(ask(to)));
    }

    /// Handles a request that may take some time because it waits for the disk or a provider.
    async fn spawn_request(&self, request: ClientRequest, to: Reply, client: Client) {
        match request {
            ClientRequest::AuthenticateRequest(request) => {
                let known = self.front.host.auth_methods().iter().any(|way| way.id == &*request.method_id.0);
                if !known {
                    return refuse(to, INVALID_PARAMS, format!("unknown authentication method `{}`", request.method_id.0));
                }
                let done = self.front.host.check_authentication().await;
                reply(to, done.map(|()| AuthenticateResponse::new()).map_err(Into::into));
            }
            ClientRequest::NewSessionRequest(request) => {
                let opening =
                    session_opening(SessionOrigin::New, request.cwd, request.additional_directories, request.mcp_servers);
                self.open(opening, to, client, |id, session, to| {
                    let options = session.options();
                    let answer = NewSessionResponse::new(id.to_owned()).modes(options.modes()).config_options(options.config());
                    reply(to, Ok(answer));
                })
                .await;
            }
            ClientRequest::LoadSessionRequest(request) => {
                let which = SessionOrigin::Stored { id: request.session_id.to_string(), history: true };
                let opening = session_opening(which, request.cwd, request.additional_directories, request.mcp_servers);
                self.open(opening, to, client, |_, session, to| {
                    let options = session.options();
                    reply(to, Ok(LoadSessionResponse::new().modes(options.modes()).config_options(options.config())));
                })
                .await;
            }
            ClientRequest::ResumeSessionRequest(request) => {
                let which = SessionOrigin::Stored { id: request.session_id.to_string(), history: false };
                let opening = session_opening(which, request.cwd, request.additional_directories, request.mcp_servers);
                self.open(opening, to, client, |_, session, to| {
                    let options = session.options();
                    reply(to, Ok(ResumeSessionResponse::new().modes(options.modes()).config_options(options.config())));
                })
                .await;
            }
            ClientRequest::ListSessionsRequest(request) => reply(to, self.list(request).await),
            ClientRequest::CloseSessionRequest(request) => {
                let id = request.session_id.to_string();
                if self.close(&id).await {
                    reply(to, Ok(CloseSessionResponse::new()));
                } else {
                    refuse(to, NOT_FOUND, format!("session `{id}` is not open in this process"));
                }
            }
            ClientRequest::DeleteSessionRequest(request) => {
                let id = request.session_id.to_string();
                self.close(&id).await;
                let done = self.front.host.delete(id).await;
                reply(to, done.map(|()| DeleteSessionResponse::new()).map_err(Into::into));
            }
            _ => {
                let _ = to.respond_with_error(Error::method_not_found());
            }
        }
    }

    async fn open(
        &self,
        opening: Result<SessionOpening, Error>,
        to: Reply,
        client: Client,
        answer: impl FnOnce(&str, &EditorSession, Reply),
    ) {
        let opening = match opening {
            Ok(opening) => opening,
            Err(error) => return reply::<()>(to, Err(error)),
        };
        if self.sessions().len() >= MAX_SESSIONS {
            return refuse(to, INTERNAL, format!("too many open sessions (limit {MAX_SESSIONS}); close one first"));
        }
        // A client that loads an open session again receives its history again.
        if let SessionOrigin::Stored { id, .. } = &opening.which {
            self.close(id).await;
        }
        let buffers = EditorBuffers::for_client(&client);
        let opening = SessionOpening { buffers: buffers.clone(), ..opening };
        let opened: RunningSession = match self.front.host.open(opening).await {
            Ok(opened) => opened,
            Err(refusal) => return reply::<()>(to, Err(refusal.into())),
        };
        let (asks, receive) = mpsc::channel(ASKS);
        let (mut session, history, notices) = EditorSession::start(client, buffers, self.front.registry, opened).await;
        let id = session.id().to_string();
        session.send_history(history).await;
        self.sessions().insert(id.clone(), asks);
        answer(&id, &session, to);
        tokio::spawn(async move {
            session.introduce(notices).await;
            session.run(receive).await;
        });
    }

    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let from: usize = match &request.cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| invalid_params(format!("invalid cursor `{cursor}`")))?,
        };
        let all = self.front.host.list(request.cwd).await?;
        let more = (all.len() > from.saturating_add(PAGE)).then(|| (from + PAGE).to_string());
        let page = all.into_iter().skip(from).take(PAGE).map(|one| {
            let title = one.title.map(|title| (self.front.looks.clean)(&title).into_owned());
            SessionInfo::new(one.id.to_string(), one.directory).title(title).updated_at(one.updated.to_string())
        });
        Ok(ListSessionsResponse::new(page.collect()).next_cursor(more))
    }

    /// Closes a session. Returns whether a session with this ID was open.
    async fn close(&self, id: &str) -> bool {
        let session = self.sessions().remove(id);
        let Some(session) = session else { return false };
        wait_for_end(&session, false).await;
        true
    }

    async fn close_all(&self) {
        let all: Vec<_> = self.sessions().drain().map(|(_, session)| session).collect();
        futures_util::future::join_all(all.iter().map(|session| wait_for_end(session, true))).await;
    }
}

async fn wait_for_end(session: &mpsc::Sender<Ask>, gone: bool) {
    let (closed, is_closed) = oneshot::channel();
    if session.send(Ask::Close { gone, closed }).await.is_ok() {
        let _ = is_closed.await;
    }
}

fn session_opening(
    which: SessionOrigin,
    cwd: PathBuf,
    more: Vec<PathBuf>,
    servers: Vec<McpServer>,
) -> Result<SessionOpening, Error> {
    let relative = |path: &&PathBuf| !Path::new(path).is_absolute();
    if let Some(path) = std::iter::once(&cwd).chain(&more).find(relative) {
        return Err(invalid_params(format!("`{}` is not an absolute directory path", path.display())));
    }
    let servers = servers.into_iter().map(capabilities::server).collect::<Result<Vec<_>, _>>()?;
    Ok(SessionOpening { which, directory: cwd, more, servers, buffers: None })
}
