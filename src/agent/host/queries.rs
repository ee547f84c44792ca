//! Handles queries about a running session: its changes and artifacts, and the resources and prompts of its servers.

use super::event_sender::EventSender;
use super::server_queries::ServerQueries;
use crate::agent::limits::MAX_OFFERED;
use crate::ports::{ArtifactError, ToolRouter};
use crate::protocol::{Event, EventKind, HostResponse, RequestedList, SessionId, SessionQuery, WorkspaceId};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Handles queries about a session until the session has ended. Does not keep the event channel open.
#[derive(Clone)]
pub(crate) struct SessionQueries {
    workspace_id: WorkspaceId,
    session_id: SessionId,
    events: mpsc::WeakUnboundedSender<Event>,
    /// Current tools.
    router: watch::Receiver<Arc<dyn ToolRouter>>,
    servers: Option<ServerQueries>,
}

impl SessionQueries {
    pub(super) fn new(
        sender: &EventSender,
        router: watch::Receiver<Arc<dyn ToolRouter>>,
        servers: Option<ServerQueries>,
    ) -> Self {
        let EventSender { workspace_id, session_id, events } = sender;
        Self { workspace_id: workspace_id.clone(), session_id: session_id.clone(), events: events.downgrade(), router, servers }
    }

    /// Answers a query by emitting an event. Returns immediately; the work may wait for a disk or a server in the
    /// background. Once the session has ended, no event is emitted.
    pub(crate) fn answer(&self, query: SessionQuery) {
        let Some(events) = self.events.upgrade() else { return };
        let sender = EventSender { workspace_id: self.workspace_id.clone(), session_id: self.session_id.clone(), events };
        let router = Arc::clone(&self.router.borrow());
        let servers = self.servers.clone();
        tokio::spawn(async move {
            let kind = match query {
                SessionQuery::ListChanges { task_id } => EventKind::ChangedFiles(router.changed_files(task_id).await),
                SessionQuery::ListLanguageServers => {
                    EventKind::ListShown(RequestedList::LanguageServers { servers: router.language_servers() })
                }
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
                    EventKind::LookedUp(HostResponse::Resources { words, resources })
                }
                SessionQuery::ServerPrompts => {
                    let prompts = match servers {
                        Some(servers) => servers.prompts().await,
                        None => Vec::new(),
                    };
                    let prompts = prompts.into_iter().take(MAX_OFFERED).collect();
                    EventKind::LookedUp(HostResponse::Prompts { prompts })
                }
                SessionQuery::ServerPrompt { server, name, arguments } => {
                    let text = match servers {
                        Some(servers) => servers.prompt(&server, &name, arguments).await,
                        None => Err(format!("unknown MCP server `{server}`")),
                    };
                    EventKind::LookedUp(HostResponse::Prompt { server, name, text })
                }
            };
            sender.send(None, None, kind);
        });
    }
}

fn or_notice(told: Result<EventKind, ArtifactError>) -> EventKind {
    told.unwrap_or_else(|error| EventKind::notice(error.message))
}
