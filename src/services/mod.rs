//! Services on other machines: receivers of records, an object store, and tools. All of them are optional and disabled
//! by default.

pub(crate) mod approvals;
mod audit;
pub(crate) mod backend_tools;
mod backoff;
mod delivery;
mod otlp;
pub(crate) mod policy_bundles;
mod redaction;
mod secret;
pub(crate) mod sessions;
mod telemetry;
pub(crate) mod workspace;

pub(crate) use approvals::{ApprovalAnswer, ApprovalService};
pub(crate) use backoff::Backoff;
pub(crate) use delivery::{DeliveryTask, DrainEnd, DrainResult};
pub(crate) use redaction::RedactText;
pub(crate) use secret::{SecretProgram, SecretSources};

use crate::config::ServiceSettings;
use crate::ports::ServiceSession;
use crate::protocol::{SessionId, WorkspaceId, size};
use crate::session::Change;
use crate::store::{LoggedDecision, OutboxEntry, OutboxFeed, OutboxLimit, OutboxSink, SessionOutbox, SinkSet, Store};
use delivery::{Receiver, drain};
use sessions::{ServiceEndReason, SessionService};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Maximum time to wait for the session service when a session ends.
const LAST_WAIT: Duration = Duration::from_millis(200);
/// Maximum time to wait, when a session starts, for the ends of earlier sessions to be delivered.
const ENDS_WAIT: Duration = Duration::from_secs(2);

/// Details of the session whose records are sent.
#[derive(Clone)]
pub(crate) struct SessionFacts {
    pub session_id: SessionId,
    pub workspace_id: WorkspaceId,
    /// Canonical workspace path.
    pub workspace: String,
    /// Agent name, if this is an agent's session.
    pub agent: Option<String>,
    /// Provider of the model with which the session started. Absent if unknown.
    pub provider: Option<String>,
    /// Registration with the session service, if this session is registered.
    pub service_session: Option<Arc<ServiceSession>>,
}

/// The configured services. Cheap to clone; nothing runs until [`Services::start`] is called.
#[derive(Clone)]
pub(crate) struct Services(Arc<Inner>);

struct Inner {
    approvals: Option<ApprovalService>,
    /// Whether audit records include content. `None` if no audit records are sent.
    audit_content: Option<bool>,
    /// Whether traces include content. `None` if no traces are sent.
    telemetry_content: Option<bool>,
    sessions: Option<SessionService>,
    receivers: Vec<Arc<dyn Receiver>>,
    limit: OutboxLimit,
    /// Number of commits that added rows. Delivery wakes up whenever it changes.
    commits: watch::Sender<u64>,
    /// Whether any records could not be stored because the outbox was full.
    losses: watch::Sender<bool>,
}

impl Services {
    /// Creates the configured services, or returns `None` if there are none. Neither reads secrets nor opens
    /// connections. `pushes_sessions` is whether an object store for sessions is configured.
    pub(crate) fn new(
        settings: &ServiceSettings,
        pushes_sessions: bool,
        secrets: impl FnOnce() -> SecretSources,
    ) -> Option<Self> {
        if settings.is_empty() {
            return None;
        }
        let secrets = secrets();
        let environment = &secrets.environment;
        let approvals = settings.approvals.as_ref().map(|service| ApprovalService::new(service.clone(), secrets.clone()));
        let mut receivers: Vec<Arc<dyn Receiver>> = Vec::new();
        receivers.extend(approvals.clone().map(|service| Arc::new(service) as Arc<dyn Receiver>));
        receivers.extend(
            settings.audit.as_ref().map(|audit| Arc::new(audit::AuditReceiver::new(audit, environment)) as Arc<dyn Receiver>),
        );
        let disabled = environment.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let telemetry = settings.telemetry.clone().filter(|_| !disabled);
        receivers.extend(
            telemetry
                .as_ref()
                .map(|telemetry| Arc::new(telemetry::TelemetryReceiver::new(telemetry, environment)) as Arc<dyn Receiver>),
        );
        let sessions = settings.sessions.as_ref().map(|service| SessionService::new(service.clone(), secrets.clone()));
        receivers.extend(sessions.clone().map(|service| Arc::new(service) as Arc<dyn Receiver>));
        let workspace = pushes_sessions.then_some(OutboxSink::Workspace);
        let sinks: Vec<OutboxSink> = receivers.iter().map(|receiver| receiver.sink()).chain(workspace).collect();
        let limit = outbox_limit(settings, &sinks);
        let audit_content = settings.audit.as_ref().map(|audit| audit.content);
        let telemetry_content = telemetry.map(|telemetry| telemetry.content);
        let (commits, losses) = (watch::Sender::new(0), watch::Sender::new(false));
        Some(Self(Arc::new(Inner { approvals, audit_content, telemetry_content, sessions, receivers, limit, commits, losses })))
    }

    /// Returns the approval service, if one is configured.
    pub(crate) fn approvals(&self) -> Option<&ApprovalService> {
        self.0.approvals.as_ref()
    }

    /// Returns the session service, if one is configured.
    pub(crate) fn sessions(&self) -> Option<&SessionService> {
        self.0.sessions.as_ref()
    }

    /// Notifies the session service that a session has ended, waiting only briefly. If that is not long enough, the
    /// next aye process delivers the notification.
    pub(crate) async fn end_session(&self, store: &Store, session: &ServiceSession, reason: ServiceEndReason) {
        let (queue, entry, limit) = (store.clone(), sessions::end_entry(session, reason), self.0.limit);
        let queued = tokio::task::spawn_blocking(move || queue.enqueue(vec![entry], limit)).await;
        if !matches!(queued, Ok(Ok(_))) {
            tracing::warn!("cannot store the end of the session for the session service");
            return;
        }
        let own = self.0.receivers.iter().filter(|receiver| receiver.sink() == OutboxSink::Sessions);
        for receiver in own {
            let _ = tokio::time::timeout(LAST_WAIT, drain(store, receiver, false, &CancellationToken::new())).await;
        }
    }

    /// Delivers queued session ends, for a limited time. Returns whether the end of this session may still be in the
    /// outbox, in which case the service could receive it after the session was resumed.
    pub(crate) async fn has_queued_end(&self, store: &Store, session: &ServiceSession) -> bool {
        let own = self.0.receivers.iter().filter(|receiver| receiver.sink() == OutboxSink::Sessions);
        for receiver in own {
            let drained = tokio::time::timeout(ENDS_WAIT, drain(store, receiver, true, &CancellationToken::new())).await;
            if drained.is_ok_and(|result| matches!(result.end, DrainEnd::Empty)) {
                return false;
            }
        }
        let (queue, session) = (store.clone(), session.clone());
        tokio::task::spawn_blocking(move || sessions::is_end_queued(&queue, &session)).await.unwrap_or(true)
    }

    /// Returns the outbox limit, including what happens when it is reached.
    pub(crate) fn limit(&self) -> OutboxLimit {
        self.0.limit
    }

    /// Returns the sinks that have a receiver.
    pub(crate) fn sinks(&self) -> Vec<OutboxSink> {
        self.0.receivers.iter().map(|receiver| receiver.sink()).collect()
    }

    /// Returns the outbox to be used by a session's journal.
    pub(crate) fn session_outbox(&self, facts: SessionFacts, redact: RedactText) -> SessionOutbox {
        let mut feeds: Vec<Box<dyn OutboxFeed>> = Vec::new();
        if self.0.approvals.is_some() {
            feeds.push(Box::new(approvals::ApprovalFeed::new(facts.clone(), redact.clone())));
        }
        if let Some(content) = self.0.audit_content {
            feeds.push(Box::new(audit::AuditFeed::new(facts.clone(), redact.clone(), content)));
        }
        if let Some(content) = self.0.telemetry_content {
            feeds.push(Box::new(telemetry::TelemetryFeed::new(facts, redact, content)));
        }
        let inner = self.0.clone();
        let committed = Arc::new(move |is_complete: bool| {
            inner.losses.send_if_modified(|lost| std::mem::replace(lost, !is_complete) == is_complete);
            inner.commits.send_modify(|count| *count = count.wrapping_add(1));
        });
        SessionOutbox { feed: Arc::new(Feeds(feeds)), limit: self.0.limit, committed }
    }

    /// Waits until the outbox is too full for new records, and then returns a warning for the user.
    pub(crate) async fn warning(&self) -> String {
        let mut losses = self.0.losses.subscribe();
        // `self` contains the sender, so the channel is open.
        let _ = losses.wait_for(|lost| *lost).await;
        let limit = size(self.0.limit.bytes);
        format!(
            "the outbox has reached its limit of {limit}: audit records and approvals are missing from here on; run `aye sync` once the \
             services can be reached"
        )
    }

    /// Starts a task that delivers a store's rows until the returned handle is dropped.
    pub(crate) fn start(&self, store: &Store) -> DeliveryTask {
        DeliveryTask::start(store, &self.0.receivers, &self.0.commits)
    }

    /// Delivers all rows in a store immediately, even if the next attempt is not due yet. Delivery to a service stops
    /// after its first failure.
    pub(crate) async fn drain(&self, store: &Store) -> Vec<DrainResult> {
        let stop = CancellationToken::new();
        futures_util::future::join_all(self.0.receivers.iter().map(|receiver| drain(store, receiver, true, &stop))).await
    }
}

/// Returns the outbox limit that applies to these sinks.
fn outbox_limit(settings: &ServiceSettings, sinks: &[OutboxSink]) -> OutboxLimit {
    OutboxLimit {
        bytes: settings.outbox_bytes,
        sinks: SinkSet::new(sinks),
        pauses: settings.audit.as_ref().is_some_and(|audit| audit.required),
    }
}

/// Returns the outbox limit for a run that only pushes sessions and uses no other service.
pub(crate) fn push_limit(settings: &ServiceSettings) -> OutboxLimit {
    OutboxLimit { pauses: false, ..outbox_limit(settings, &[OutboxSink::Workspace]) }
}

/// Combines two outboxes into one that stores the rows of both, with the limit of the services' outbox.
pub(crate) fn join_outboxes(services: Option<SessionOutbox>, other: Option<SessionOutbox>) -> Option<SessionOutbox> {
    let (services, other) = match (services, other) {
        (Some(services), Some(other)) => (services, other),
        (one, none) => return one.or(none),
    };
    let (first, second) = (services.committed, other.committed);
    let committed = Arc::new(move |is_complete: bool| {
        first(is_complete);
        second(is_complete);
    });
    SessionOutbox { feed: Arc::new(BothFeeds(services.feed, other.feed)), limit: services.limit, committed }.into()
}

/// Pushes all queued sessions to the object store immediately, even if the next attempt is not due yet.
pub(crate) async fn push_waiting(store: &Store, queue: workspace::PushQueue) -> DrainResult {
    let receiver: Arc<dyn Receiver> = Arc::new(queue);
    drain(store, &receiver, true, &CancellationToken::new()).await
}

/// Two outbox feeds, called in order.
struct BothFeeds(Arc<dyn OutboxFeed>, Arc<dyn OutboxFeed>);

impl OutboxFeed for BothFeeds {
    fn changes(&self, changes: &[Change<'_>], now: jiff::Timestamp) -> Vec<OutboxEntry> {
        self.0.changes(changes, now).into_iter().chain(self.1.changes(changes, now)).collect()
    }

    fn decision(&self, decision: &LoggedDecision) -> Vec<OutboxEntry> {
        self.0.decision(decision).into_iter().chain(self.1.decision(decision)).collect()
    }
}

/// Outbox feeds of all services, called in order.
struct Feeds(Vec<Box<dyn OutboxFeed>>);

impl OutboxFeed for Feeds {
    fn changes(&self, changes: &[Change<'_>], now: jiff::Timestamp) -> Vec<OutboxEntry> {
        self.0.iter().flat_map(|feed| feed.changes(changes, now)).collect()
    }

    fn decision(&self, decision: &LoggedDecision) -> Vec<OutboxEntry> {
        self.0.iter().flat_map(|feed| feed.decision(decision)).collect()
    }
}
