//! Queries about a running session: its changes, its artifacts, and what its servers offer.

use super::event_sender::Teller;
use super::servers::{Servers, in_time, too_late};
use crate::agent::limits::{MAX_OFFERED, OFFERED_SECONDS, SERVER_PROMPT_BYTES};
use crate::ports::{ArtifactError, RemoteError, RemoteServers, ToolRouter};
use crate::protocol::{Event, EventKind, LookedUp, ServerResource, ServerState, SessionId, SessionQuery, WorkspaceId};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, mpsc, watch};

/// Answers queries until the session has ended. Does not keep the event channel open.
#[derive(Clone)]
pub struct SessionQueries {
    workspace_id: WorkspaceId,
    session_id: SessionId,
    events: mpsc::WeakUnboundedSender<Event>,
    /// Current tools.
    router: watch::Receiver<Arc<dyn ToolRouter>>,
    servers: Option<ServerQueries>,
}

impl SessionQueries {
    pub(super) fn new(teller: &Teller, router: watch::Receiver<Arc<dyn ToolRouter>>, servers: Option<&Servers>) -> Self {
        let Teller { workspace_id, session_id, events } = teller;
        Self {
            workspace_id: workspace_id.clone(),
            session_id: session_id.clone(),
            events: events.downgrade(),
            router,
            servers: servers.map(Servers::queries),
        }
    }

    /// Answers a query with an event; returns at once. The work may wait for a disk or a server, and nothing waits for it. After the
    /// session has ended there is no answer.
    pub fn answer(&self, query: SessionQuery) {
        let Some(events) = self.events.upgrade() else { return };
        let teller = Teller { workspace_id: self.workspace_id.clone(), session_id: self.session_id.clone(), events };
        let router = Arc::clone(&self.router.borrow());
        let servers = self.servers.clone();
        tokio::spawn(async move {
            let kind = match query {
                SessionQuery::ListChanges { task_id } => EventKind::ChangedFiles(router.changed_files(task_id).await),
                SessionQuery::ListArtifacts => {
                    or_notice(router.artifacts().await.map(|artifacts| EventKind::ArtifactsListed { artifacts }))
                }
                SessionQuery::ReadArtifact { uri } => {
                    let read = router.read_artifact(&uri).await;
                    or_notice(read.map(|(artifact, text)| EventKind::ArtifactRead { artifact, text }))
                }
                SessionQuery::ServerResources { words } => {
                    let resources = match servers {
                        Some(servers) => servers.resources(&words).await,
                        None => Vec::new(),
                    };
                    EventKind::LookedUp(LookedUp::Resources { words, resources })
                }
                SessionQuery::ServerPrompts => {
                    let prompts = match servers {
                        Some(servers) => in_time(servers.remote.prompts()).await.unwrap_or_default(),
                        None => Vec::new(),
                    };
                    let prompts = prompts.into_iter().take(MAX_OFFERED).collect();
                    EventKind::LookedUp(LookedUp::Prompts { prompts })
                }
                SessionQuery::ServerPrompt { server, name, arguments } => {
                    let text = match servers {
                        Some(servers) => prompt(&*servers.remote, &server, &name, arguments).await,
                        None => Err(format!("unknown MCP server `{server}`")),
                    };
                    EventKind::LookedUp(LookedUp::Prompt { server, name, text })
                }
            };
            teller.tell(None, None, kind);
        });
    }
}

fn or_notice(told: Result<EventKind, ArtifactError>) -> EventKind {
    told.unwrap_or_else(|error| EventKind::Notice { message: error.message })
}

/// Resources listed last, and the time of the query.
type Offered = (Instant, Vec<ServerResource>);

/// Cache of server resources, shared by a session and its queries.
#[derive(Clone, Default)]
pub(super) struct Offers(Arc<std::sync::Mutex<Arc<Mutex<Option<Offered>>>>>);

impl Offers {
    /// Empties the cache. A running query does not fill it any more.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
    }

    fn current(&self) -> Arc<Mutex<Option<Offered>>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Servers of a session, for its queries.
#[derive(Clone)]
pub(super) struct ServerQueries {
    remote: Arc<dyn RemoteServers>,
    offers: Offers,
}

impl ServerQueries {
    pub(super) fn new(remote: Arc<dyn RemoteServers>, offers: Offers) -> Self {
        Self { remote, offers }
    }

    async fn resources(&self, words: &str) -> Vec<ServerResource> {
        // The cache is looked up here, because servers in another state may offer other resources.
        let offers = self.offers.current();
        if let Some((name, _)) = words.split_once(':') {
            let is_asleep = |state: &ServerState| *state == ServerState::Asleep;
            if self.remote.statuses().iter().any(|status| status.name == name && is_asleep(&status.state)) {
                // A server called by its name is wanted, so it is started; its resources are listed below with the others.
                let _ = in_time(self.remote.resources(Some(name))).await;
            }
        }
        matching(self.all_resources(&offers).await, words)
    }

    /// Lists all resources. The list is cached for a while, because each keystroke asks for it.
    async fn all_resources(&self, offers: &Mutex<Option<Offered>>) -> Vec<ServerResource> {
        // Concurrent callers wait for the same query.
        let mut kept = offers.lock().await;
        if let Some((asked, all)) = &*kept
            && asked.elapsed() < Duration::from_secs(OFFERED_SECONDS)
        {
            return all.clone();
        }
        // A failure is cached too, so that a hanging server does not delay each keystroke.
        let all = in_time(self.remote.resources(None)).await.and_then(Result::ok).unwrap_or_default();
        *kept = Some((Instant::now(), all.clone()));
        all
    }
}

/// Returns the resources whose server, URI or name contains all words. With a complete server name, only those of that server.
fn matching(all: Vec<ServerResource>, words: &str) -> Vec<ServerResource> {
    let words = words.to_lowercase();
    let fits = |resource: &ServerResource| {
        let (address, name) = (format!("{}:{}", resource.server, resource.uri).to_lowercase(), resource.name.to_lowercase());
        words.split_whitespace().all(|word| address.contains(word) || name.contains(word))
    };
    let begins = |resource: &ServerResource| !format!("{}:{}", resource.server, resource.uri).to_lowercase().starts_with(&words);
    let mut found: Vec<ServerResource> = all.into_iter().filter(fits).collect();
    found.sort_by_key(begins);
    found.truncate(MAX_OFFERED);
    found
}

async fn prompt(
    remote: &dyn RemoteServers,
    server: &str,
    name: &str,
    arguments: BTreeMap<String, String>,
) -> Result<String, String> {
    let arguments: Map<String, Value> = arguments.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    let said: Option<Result<String, RemoteError>> = in_time(remote.prompt(server, name, arguments)).await;
    let text = said.ok_or_else(too_late)?.map_err(|error| error.to_string())?;
    if text.len() > SERVER_PROMPT_BYTES {
        return Err(format!("the prompt text has {} bytes, more than the limit of {SERVER_PROMPT_BYTES}", text.len()));
    }
    Ok(text)
}
