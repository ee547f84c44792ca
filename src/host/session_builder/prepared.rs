//! A session whose servers and tools are connected, and that is ready to start or already running.

use super::SessionNotices;
use super::approval_service::ServiceDecisions;
use super::front_end::{FrontEnd, NoticeTarget, Pruning, ServerStart};
use crate::agent::{self, Account, SessionHandle, SessionQueries};
use crate::host::background_uploads::BackgroundUploads;
use crate::host::console::warn_all;
use crate::host::context::AppContext;
use crate::host::policy_layers::Policy;
use crate::host::project::UnreadReports;
use crate::host::registration;
use crate::host::reload::PolicyReloader;
use crate::host::retention;
use crate::host::session::Session;
use crate::host::session_services::transfer_outbox;
use crate::ports::ToolRouter;
use crate::protocol::{ChangedFiles, Event, EventKind, SessionCommand, SessionId, WorkspaceId};
use crate::services::sessions::ServiceEndReason;
use crate::services::{DeliveryTask, Services};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// A session that is ready to start.
pub(crate) struct PreparedSession {
    setup: Box<agent::Setup>,
    /// Reloads the policy when its files change. `None` if the policy is fixed.
    reload: Option<Box<PolicyReloader>>,
    /// Uploads to the object store, if one is configured.
    uploads: Option<BackgroundUploads>,
    notices: SessionNotices,
    /// Policy in effect when the session starts.
    policy: Policy,
    /// Approval service, if it decides on approvals.
    decisions: Option<Box<ServiceDecisions>>,
    resources: Box<Resources>,
}

/// Resources that must outlive a session's run.
struct Resources {
    front_end: FrontEnd,
    app: AppContext,
    session: Session,
    unread: Arc<UnreadReports>,
    /// Delivers records to services while the session is running.
    delivery: Option<DeliveryTask>,
    /// Task that warns if the outbox is full.
    warnings: Option<JoinHandle<()>>,
}

/// A running session. It ends when all senders of its commands have been dropped, or when it receives the command to
/// quit.
pub(crate) struct StartedSession {
    queries: SessionQueries,
    account: Account,
    router: Arc<dyn ToolRouter>,
    ended: Option<JoinHandle<()>>,
    resources: Box<Resources>,
}

impl PreparedSession {
    pub(super) fn new(
        front_end: FrontEnd,
        (setup, reload): (agent::Setup, Option<PolicyReloader>),
        (app, session, policy): (AppContext, Session, Policy),
        (unread, uploads): (Arc<UnreadReports>, Option<BackgroundUploads>),
        notices: SessionNotices,
    ) -> Self {
        let resources = Box::new(Resources { front_end, app, session, unread, delivery: None, warnings: None });
        Self { setup: Box::new(setup), reload: reload.map(Box::new), uploads, notices, policy, decisions: None, resources }
    }

    /// Sets the approval service that decides on approvals.
    pub(super) fn deciding_by(self, decisions: Option<ServiceDecisions>) -> Self {
        Self { decisions: decisions.map(Box::new), ..self }
    }

    /// Returns everything the agent needs to run the session.
    pub(crate) fn setup(&self) -> &agent::Setup {
        &self.setup
    }

    pub(crate) fn session(&self) -> &Session {
        &self.resources.session
    }

    /// Returns the policy in effect, including the session service's policy.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn context(&self) -> &AppContext {
        &self.resources.app
    }

    /// Returns the notices that the front end has not retrieved yet.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        self.notices.take()
    }

    /// Starts the session. `room` indicates whether the front end can accept more streamed text. If it is `None`, the
    /// front end always can.
    pub(crate) fn start(
        mut self,
        commands: mpsc::Receiver<SessionCommand>,
        events: mpsc::UnboundedSender<Event>,
        room: Option<watch::Receiver<bool>>,
    ) -> StartedSession {
        self.setup.room = room;
        let router = self.setup.router.clone();
        let (commands, events) = match self.decisions.take() {
            Some(decisions) => {
                let has_user = !matches!(self.resources.front_end.approver, agent::Approver::Service { .. });
                decisions.connect(commands, events, has_user)
            }
            None => (commands, events),
        };
        let to_front_end = events.downgrade();
        let SessionHandle { ended, queries, account } = agent::spawn(*self.setup, commands, events);
        if let Some(reload) = self.reload {
            let app = &self.resources.app;
            if let Some(service) = app.service_policy().filter(|_| app.parent.is_none()) {
                tokio::spawn(service.poll(reload.notices()));
            }
            if let Some(session) = app.registration.get().cloned().filter(|_| app.parent.is_none()) {
                let (store, id) = (self.resources.session.store.clone(), self.resources.session.id().clone());
                tokio::spawn(registration::renew(session, app.clone(), store, id, reload.notices()));
            }
            tokio::spawn(reload.run());
        }
        if let Some(uploads) = self.uploads {
            tokio::spawn(uploads.run());
        }
        let mut resources = self.resources;
        // The sessions of agents share the store, so the delivery of their parent's records is enough.
        if resources.app.parent.is_none()
            && let Some(services) = &resources.app.services
        {
            resources.delivery = Some(services.start(&resources.session.store));
            let (services, session) = (services.clone(), (resources.app.workspace_id(), resources.session.id().clone()));
            resources.warnings = Some(tokio::spawn(warn_when_full(services, session, to_front_end)));
        }
        resources.session.kept.connect_account(&account);
        if resources.front_end.servers == ServerStart::Background
            && let Some(servers) = resources.session.kept.servers()
        {
            servers.discover();
        }
        StartedSession { queries, account, router, ended: Some(ended), resources }
    }

    /// Releases the session without starting it.
    pub(crate) async fn close(self) {
        drop(self.setup);
        self.resources.release().await;
    }
}

impl StartedSession {
    pub(crate) fn queries(&self) -> &SessionQueries {
        &self.queries
    }

    /// Returns the account that pays for reviews of this session's changes.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Waits until the session has ended and everything has been saved.
    pub(crate) async fn wait_until_ended(&mut self) {
        if let Some(ended) = self.ended.take() {
            let _ = ended.await;
        }
    }

    /// Returns the files that the session changed.
    pub(crate) async fn changed_files(&self) -> ChangedFiles {
        self.router.changed_files(None).await
    }

    /// Stops the MCP servers, prunes expired data if this is due, and releases the session so that other processes can
    /// claim it.
    pub(crate) async fn close(self) {
        drop(self.router);
        self.resources.release().await;
    }
}

impl Resources {
    /// Informs the session service that the session has ended.
    async fn end_registration(&self) {
        let app = &self.app;
        if let (Some(services), Some(registration), None) = (&app.services, app.registration.get(), &app.parent) {
            let (store, id) = (self.session.store.clone(), self.session.id().clone());
            let status = tokio::task::spawn_blocking(move || Some(store.find(id.as_str()).ok()?.status)).await;
            let reason = ServiceEndReason::for_status(status.ok().flatten());
            services.end_session(&self.session.store, &registration.facts(), reason).await;
        }
    }

    async fn release(mut self: Box<Self>) {
        // Rows that are not acknowledged stay in the outbox.
        if let Some(delivery) = self.delivery.take() {
            delivery.end().await;
        }
        if let Some(warnings) = self.warnings.take() {
            warnings.abort();
        }
        self.end_registration().await;
        self.session.end_servers().await;
        let unread = self.unread.take();
        if matches!(self.front_end.notices, NoticeTarget::Stderr | NoticeTarget::Both) {
            warn_all(&unread);
        }
        // Runs on another thread, because it reads the disk.
        let released = tokio::task::spawn_blocking(move || {
            if self.front_end.pruning == Pruning::AtTheEnd {
                retention::prune_at_end(&self.app, &self.session.store);
            }
            if self.app.parent.is_none() {
                transfer_outbox(&self.app, &self.session.store);
            }
            drop(self.session);
        });
        let _ = released.await;
    }
}

/// Warns, once, if the outbox has no room for further records.
async fn warn_when_full(
    services: Services,
    (workspace_id, session_id): (WorkspaceId, SessionId),
    events: mpsc::WeakUnboundedSender<Event>,
) {
    let (message, timestamp) = (services.warning().await, jiff::Timestamp::now());
    if let Some(events) = events.upgrade() {
        let kind = EventKind::notice(message);
        let _ = events.send(Event { workspace_id, session_id, task_id: None, step_id: None, timestamp, kind });
    }
}
