//! Requests from MCP servers to the session: the handler that receives them, and the events that the session waits
//! for.

use super::sampling::{Sampling, SamplingPhase};
use crate::agent::limits::CHANNEL_DEPTH;
use crate::ports::{BoxFuture, RemoteAsks, RemoteServers, UserQuestion};
use crate::protocol::{Elicitation, ElicitationAnswer};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Request from a server, with the channel for its response.
pub(crate) enum ServerRequest {
    Elicitation(Elicitation, oneshot::Sender<ElicitationAnswer>),
    Sampling(Sampling),
}

/// Returns whether sampling support is announced to the given server.
pub(crate) type SamplingFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A session's servers, and the requests they send.
pub(crate) struct ServerConnections {
    pub servers: Arc<dyn RemoteServers>,
    pub asked: mpsc::Receiver<ServerRequest>,
}

/// Creates the handler for server requests, and the receiver through which the session obtains them. Without a user,
/// all requests are declined. `roots` lists directories as pairs of a `file:` URI and a name.
pub(crate) fn request_handler(
    person: bool,
    roots: Vec<(String, String)>,
    samples: SamplingFilter,
) -> (Arc<dyn RemoteAsks>, mpsc::Receiver<ServerRequest>) {
    let (session, asked) = mpsc::channel(CHANNEL_DEPTH);
    (Arc::new(RequestHandler { session, person, roots, samples }), asked)
}

struct RequestHandler {
    session: mpsc::Sender<ServerRequest>,
    person: bool,
    roots: Vec<(String, String)>,
    samples: SamplingFilter,
}

impl RemoteAsks for RequestHandler {
    fn elicit(&self, elicitation: Elicitation) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async move {
            if !self.person {
                return ElicitationAnswer::Decline;
            }
            let (send, answer) = oneshot::channel();
            // The session's queue is full because the servers send too many requests.
            if self.session.try_send(ServerRequest::Elicitation(elicitation, send)).is_err() {
                return ElicitationAnswer::Cancel;
            }
            answer.await.unwrap_or(ElicitationAnswer::Cancel)
        })
    }

    fn roots(&self) -> Vec<(String, String)> {
        self.roots.clone()
    }

    fn samples(&self, server: &str) -> bool {
        // Without a session, there is no model to sample from.
        !self.session.is_closed() && (self.samples)(server)
    }

    fn sample(&self, server: &str, request: Value) -> BoxFuture<'_, Result<Value, String>> {
        let (answer, answered) = oneshot::channel();
        let asked = Sampling { server: server.to_owned(), request, person: self.person, answer };
        Box::pin(async move {
            if self.session.try_send(ServerRequest::Sampling(asked)).is_err() {
                return Err("no session with a model is running".to_owned());
            }
            answered.await.unwrap_or_else(|_| Err("the session ended".to_owned()))
        })
    }
}

/// Source of server events and of the model's questions.
#[derive(Default)]
pub(super) struct ServerEvents {
    changed: Option<watch::Receiver<u64>>,
    asked: Option<mpsc::Receiver<ServerRequest>>,
    /// Questions from the model; `None` without a user.
    pub questions: Option<mpsc::Receiver<UserQuestion>>,
    steps: Option<mpsc::Receiver<SamplingPhase>>,
}

pub(super) enum ServerEvent {
    Changed,
    Request(ServerRequest),
    Sampling(SamplingPhase),
}

impl ServerEvents {
    pub(super) fn new(
        servers: &dyn RemoteServers,
        asked: mpsc::Receiver<ServerRequest>,
        phases: mpsc::Receiver<SamplingPhase>,
    ) -> Self {
        Self { changed: Some(servers.changed()), asked: Some(asked), questions: None, steps: Some(phases) }
    }

    /// Waits for the next event. Never completes if there are neither servers nor questions.
    pub(super) async fn next(&mut self) -> ServerEvent {
        tokio::select! {
            () = next_change(&mut self.changed) => ServerEvent::Changed,
            asked = next_message(&mut self.asked) => ServerEvent::Request(asked),
            UserQuestion { asked, answer } = next_message(&mut self.questions) => {
                ServerEvent::Request(ServerRequest::Elicitation(asked, answer))
            }
            step = next_message(&mut self.steps) => ServerEvent::Sampling(step),
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

async fn next_message<T>(channel: &mut Option<mpsc::Receiver<T>>) -> T {
    if let Some(open) = channel
        && let Some(next) = open.recv().await
    {
        return next;
    }
    *channel = None;
    std::future::pending().await
}
