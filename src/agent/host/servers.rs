//! MCP servers of a session: reports their state, and forwards their requests to the user.

use super::Host;
use super::PolicyUpdate;
use super::event_sender::Teller;
use super::queries::{Offers, ServerQueries};
use super::sampling::{Sampling, SamplingPhase, SamplingQueue};
use crate::agent::limits::{
    CHANNEL_DEPTH, MAX_ELICITATIONS, MAX_FORM_BYTES, MAX_FORM_CHOICES, MAX_FORM_FIELDS, RESOURCE_BYTES, SERVER_SECONDS,
};
use crate::agent::turn::Resource;
use crate::ports::{BoxFuture, RemoteAsks, RemoteContent, RemoteServers};
use crate::protocol::{
    CallId, Command, Elicitation, ElicitationAnswer, ElicitationOutcome, ErrorCode, EventKind, FieldKind, ServerStatus,
    ToolError, ToolResult, Wanted, cut_before,
};
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Tool name recorded for resources that were read.
const RESOURCE: &str = "ReadResource";

/// Request of a server, with the channel for its answer.
pub enum ElicitationRequest {
    Person(Elicitation, oneshot::Sender<ElicitationAnswer>),
    Model(Sampling),
}

/// Decides which servers are told that sampling is supported.
pub type Samples = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Servers of a session, and their requests.
pub struct Remote {
    pub servers: Arc<dyn RemoteServers>,
    pub asked: mpsc::Receiver<ElicitationRequest>,
}

/// Creates the handler of server requests, and the receiver of these requests for the session. Without a user, all requests are declined.
/// `roots`: directories, as `file:` URIs with names.
pub fn asks(
    person: bool,
    roots: Vec<(String, String)>,
    samples: Samples,
) -> (Arc<dyn RemoteAsks>, mpsc::Receiver<ElicitationRequest>) {
    let (session, asked) = mpsc::channel(CHANNEL_DEPTH);
    (Arc::new(Asks { session, person, roots, samples }), asked)
}

struct Asks {
    session: mpsc::Sender<ElicitationRequest>,
    person: bool,
    roots: Vec<(String, String)>,
    samples: Samples,
}

impl RemoteAsks for Asks {
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async move {
            if !self.person {
                return ElicitationAnswer::Decline;
            }
            let (send, answer) = oneshot::channel();
            // A session with a full queue has too many requests.
            if self.session.try_send(ElicitationRequest::Person(elicitation, send)).is_err() {
                return ElicitationAnswer::Cancel;
            }
            answer.await.unwrap_or(ElicitationAnswer::Cancel)
        })
    }

    fn roots(&self) -> Vec<(String, String)> {
        self.roots.clone()
    }

    fn samples(&self, server: &str) -> bool {
        // Without a session there is no model.
        !self.session.is_closed() && (self.samples)(server)
    }

    fn sample(&self, server: &str, request: Value) -> BoxFuture<'_, Result<Value, String>> {
        let (answer, answered) = oneshot::channel();
        let asked = Sampling { server: server.to_owned(), request, person: self.person, answer };
        Box::pin(async move {
            if self.session.try_send(ElicitationRequest::Model(asked)).is_err() {
                return Err("no session with a model is running".to_owned());
            }
            answered.await.unwrap_or_else(|_| Err("the session ended".to_owned()))
        })
    }
}

pub(super) struct Servers {
    remote: Arc<dyn RemoteServers>,
    /// States reported last.
    told: Vec<ServerStatus>,
    /// Open requests to the user.
    open: HashMap<String, oneshot::Sender<ElicitationAnswer>>,
    asked: u64,
    /// Sampling requests that wait for the model, and the channel that reports on them.
    pub(super) line: SamplingQueue,
    pub(super) steps: mpsc::Sender<SamplingPhase>,
    offers: Offers,
}

impl Servers {
    pub(super) fn told_to(&self, window_tokens: u64) {
        self.remote.told_to(window_tokens);
    }

    pub(super) fn queries(&self) -> ServerQueries {
        ServerQueries::new(Arc::clone(&self.remote), self.offers.clone())
    }
}

/// Sources of server events.
#[derive(Default)]
pub(super) struct ServerEvents {
    changed: Option<watch::Receiver<u64>>,
    asked: Option<mpsc::Receiver<ElicitationRequest>>,
    steps: Option<mpsc::Receiver<SamplingPhase>>,
}

pub(super) enum ServerEvent {
    Changed,
    ElicitationRequest(ElicitationRequest),
    Sampling(SamplingPhase),
}

pub(super) fn begin(remote: Option<Remote>) -> (Option<Servers>, ServerEvents) {
    let Some(Remote { servers, asked }) = remote else { return (None, ServerEvents::default()) };
    let (steps, receive) = mpsc::channel(CHANNEL_DEPTH);
    let wire = ServerEvents { changed: Some(servers.changed()), asked: Some(asked), steps: Some(receive) };
    let (told, open, offers) = (Vec::new(), HashMap::new(), Offers::default());
    (Some(Servers { remote: servers, told, open, asked: 0, line: SamplingQueue::default(), steps, offers }), wire)
}

/// Ends the servers: their processes and their open requests.
pub(super) async fn end(servers: Option<Servers>) {
    if let Some(Servers { remote, open, line, .. }) = servers {
        // Waiting servers receive a cancellation.
        drop((open, line));
        remote.end().await;
    }
}

impl ServerEvents {
    /// Waits for the next event; never completes without servers.
    pub(super) async fn next(&mut self) -> ServerEvent {
        tokio::select! {
            () = next_change(&mut self.changed) => ServerEvent::Changed,
            asked = next_of(&mut self.asked) => ServerEvent::ElicitationRequest(asked),
            step = next_of(&mut self.steps) => ServerEvent::Sampling(step),
        }
    }
}

async fn next_change(changed: &mut Option<watch::Receiver<u64>>) {
    if let Some(open) = changed
        && open.changed().await.is_ok()
    {
        return;
    }
    *changed = None;
    std::future::pending::<()>().await;
}

async fn next_of<T>(channel: &mut Option<mpsc::Receiver<T>>) -> T {
    if let Some(open) = channel
        && let Some(next) = open.recv().await
    {
        return next;
    }
    *channel = None;
    std::future::pending().await
}

/// Returns whether a command is for the servers. The session does not depend on these.
pub(super) fn is_for(command: &Command) -> bool {
    matches!(command, Command::AnswerElicitation { .. } | Command::ReconnectServer { .. })
}

impl Host {
    pub(super) async fn of_servers(&mut self, happened: ServerEvent, updates: &mut Option<mpsc::Receiver<PolicyUpdate>>) {
        match happened {
            ServerEvent::Changed => self.tell_servers(updates).await,
            ServerEvent::ElicitationRequest(ElicitationRequest::Person(elicitation, answer)) => {
                self.ask_for_server(elicitation, answer);
            }
            ServerEvent::ElicitationRequest(ElicitationRequest::Model(sampling)) => self.sample_for_server(sampling),
            ServerEvent::Sampling(step) => self.sampling_goes_on(step).await,
        }
    }

    /// Reports changed server states. The tools of a ready server are in force before that, so that a task started at once has them.
    pub(super) async fn tell_servers(&mut self, updates: &mut Option<mpsc::Receiver<PolicyUpdate>>) {
        let Some(servers) = &mut self.servers else { return };
        // Read before the tools, so that a server that becomes ready later is in the next event.
        let now = servers.remote.statuses();
        // The offers may change with the states.
        servers.offers.forget();
        if now == servers.told {
            return;
        }
        servers.told.clone_from(&now);
        self.machine.know_servers(now.iter().map(|status| status.name.clone()).collect());
        self.take_server_tools(updates).await;
        self.emit(None, None, EventKind::ServersChanged { servers: now });
    }

    /// Asks the user on behalf of a server. A server with too many or too large requests is cancelled, and the user is told why.
    pub(super) fn ask_for_server(&mut self, mut elicitation: Elicitation, answer: oneshot::Sender<ElicitationAnswer>) {
        let Some(servers) = &mut self.servers else { return };
        servers.open.retain(|_, open| !open.is_closed());
        let refused = if servers.open.len() >= MAX_ELICITATIONS {
            Some("input while too many of its requests were already open".to_owned())
        } else {
            too_much(&elicitation)
        };
        if let Some(what) = refused {
            let _ = answer.send(ElicitationAnswer::Cancel);
            let message = format!("{} (MCP) requested {what}; aye cancelled the request", elicitation.server);
            return self.emit(None, None, EventKind::Notice { message });
        }
        servers.asked += 1;
        // The names that servers give may collide.
        elicitation.elicitation_id = format!("elicitation_{}", servers.asked);
        let (send, answered) = oneshot::channel();
        servers.open.insert(elicitation.elicitation_id.clone(), send);
        let (teller, id) = (self.teller(), elicitation.elicitation_id.clone());
        self.emit(None, None, EventKind::ElicitationRequested(elicitation));
        tokio::spawn(wait(id, answer, answered, teller));
    }

    pub(super) fn for_servers(&mut self, command: Command) {
        match command {
            Command::AnswerElicitation { elicitation_id, answer } => {
                let open = self.servers.as_mut().and_then(|servers| servers.open.remove(&elicitation_id));
                if open.is_none_or(|open| open.send(answer).is_err()) {
                    let message = "the server no longer waits for that answer".to_owned();
                    self.emit(None, None, EventKind::Notice { message });
                }
            }
            Command::ReconnectServer { name } => match &self.servers {
                Some(servers) if servers.told.iter().any(|status| status.name == name) => servers.remote.reconnect(&name),
                _ => {
                    let message = format!("unknown MCP server `{name}`");
                    self.emit(None, None, EventKind::Notice { message });
                }
            },
            _ => {}
        }
    }

    /// Reads the resources mentioned in a prompt, in order: as bounded text without secrets. If the policy asks, the user approves first.
    pub(super) fn hand_over(&mut self, resources: Vec<Resource>) -> impl Future<Output = Vec<ToolResult>> + Send + use<> {
        let asked = resources.into_iter().map(|one| (self.asked_first(&one), one)).collect::<Vec<_>>();
        let remote = self.servers.as_ref().map(|servers| Arc::clone(&servers.remote));
        let (redactor, kill) = (Arc::clone(&self.redactor), self.kill.clone());
        async move {
            let read = asked.into_iter().enumerate().map(|(at, (asked, Resource { server, uri, .. }))| {
                let (remote, redactor, kill) = (remote.clone(), Arc::clone(&redactor), kill.clone());
                async move {
                    let id = CallId::new(format!("resource_{at}"));
                    let text = tokio::select! {
                        text = resource_text(remote.as_deref(), &server, &uri, asked) => text,
                        () = kill.cancelled() => Err("the session is ending".to_owned()),
                    };
                    match text {
                        Ok(text) => ToolResult::succeeded(id, RESOURCE, redactor.redact(&text).text),
                        Err(why) => ToolResult::refused(id, RESOURCE, ToolError::new(ErrorCode::ToolExecutionFailed, why)),
                    }
                }
            });
            join_all(read.collect::<Vec<_>>()).await
        }
    }

    /// Asks the user, if required, and returns the receiver of the answer.
    fn asked_first(&mut self, resource: &Resource) -> Option<oneshot::Receiver<ElicitationAnswer>> {
        let why = resource.asks.as_deref()?;
        let message = format!(
            "Your prompt mentions `{}` of this server. aye reads it from the server and sends its content to the model. {why}",
            resource.uri
        );
        let (send, answer) = oneshot::channel();
        let (elicitation_id, server, wanted) = (String::new(), resource.server.clone(), Wanted::Form { fields: Vec::new() });
        self.ask_for_server(Elicitation { elicitation_id, server, message, wanted }, send);
        Some(answer)
    }
}

/// Waits until the user answers or the server no longer waits.
async fn wait(
    id: String,
    mut answer: oneshot::Sender<ElicitationAnswer>,
    answered: oneshot::Receiver<ElicitationAnswer>,
    teller: Teller,
) {
    let outcome = tokio::select! {
        given = answered => {
            let given = given.unwrap_or(ElicitationAnswer::Cancel);
            let outcome = given.outcome();
            if answer.send(given).is_ok() { outcome } else { ElicitationOutcome::Withdrawn }
        }
        () = answer.closed() => ElicitationOutcome::Withdrawn,
    };
    teller.tell(None, None, EventKind::ElicitationEnded { elicitation_id: id, outcome });
}

/// Returns what makes a request too large for a user, if it is.
fn too_much(elicitation: &Elicitation) -> Option<String> {
    let Wanted::Form { fields } = &elicitation.wanted else {
        return (size(elicitation) > MAX_FORM_BYTES).then(|| "a visit to an overlong URL".to_owned());
    };
    let choices = |field: &crate::protocol::FormField| match &field.takes {
        FieldKind::Choice { choices } | FieldKind::Choices { choices, .. } => choices.len(),
        FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::Flag => 0,
    };
    if fields.len() > MAX_FORM_FIELDS {
        return Some(format!("a form of {} fields (at most {MAX_FORM_FIELDS} are shown)", fields.len()));
    }
    if let Some(most) = fields.iter().map(choices).max().filter(|most| *most > MAX_FORM_CHOICES) {
        return Some(format!("a choice of {most} (at most {MAX_FORM_CHOICES} are shown)"));
    }
    (size(elicitation) > MAX_FORM_BYTES).then(|| "a form that is too long to review".to_owned())
}

fn size(elicitation: &Elicitation) -> usize {
    serde_json::to_string(elicitation).map_or(usize::MAX, |json| json.len())
}

pub(super) async fn in_time<T>(asked: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_secs(SERVER_SECONDS), asked).await.ok()
}

pub(super) fn too_late() -> String {
    format!("the server did not respond within {SERVER_SECONDS} s")
}

/// Returns all text of a resource, with a placeholder for other content.
async fn resource_text(
    remote: Option<&dyn RemoteServers>,
    server: &str,
    uri: &str,
    asked: Option<oneshot::Receiver<ElicitationAnswer>>,
) -> Result<String, String> {
    let remote = remote.ok_or_else(|| format!("unknown MCP server `{server}`"))?;
    if let Some(asked) = asked
        && !matches!(asked.await, Ok(ElicitationAnswer::Accept { .. }))
    {
        return Err("you did not approve it".to_owned());
    }
    let read = in_time(remote.read_resource(server, uri)).await;
    let read = read.ok_or_else(too_late)?.map_err(|error| error.to_string())?;
    let piece = |content: RemoteContent| match content {
        RemoteContent::Text(text) | RemoteContent::Resource { text, .. } => text,
        RemoteContent::Bytes { media_type, bytes, .. } => format!("[{media_type}, {} bytes: not shown]", bytes.len()),
        RemoteContent::Link { uri, .. } => format!("[more at {uri}]"),
    };
    let mut text = String::new();
    for piece in read.content.into_iter().map(piece) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.extend(piece.chars().filter(|one| !one.is_control() || matches!(one, '\n' | '\t')));
        if text.len() > RESOURCE_BYTES {
            text.truncate(cut_before(&text, RESOURCE_BYTES));
            text.push_str("\n[truncated]");
            break;
        }
    }
    if text.trim().is_empty() { Err("the server returned no content".to_owned()) } else { Ok(text) }
}
