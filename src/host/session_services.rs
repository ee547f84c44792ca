//! Connects a session to services: provides the outbox for its journal, and describes the state of delivery to the
//! user.

use super::context::AppContext;
use super::registered_session::RegisteredSession;
use crate::policy::redact::Redactor;
use crate::ports::Record;
use crate::protocol::{SessionId, size};
use crate::services::{RedactText, Services, SessionFacts};
use crate::session::{SessionState, last_task_records};
use crate::store::{OutboxSink, SessionOutbox, SinkStatus, Store, stored_sinks};
use std::fmt::Write as _;
use std::sync::Arc;

/// Returns the outbox for a session's journal, or `None` if no service is configured. `records` contains the records of
/// earlier processes.
pub(super) fn session_outbox(
    app: &AppContext,
    (id, model): (&SessionId, &str),
    records: &[Record],
    redactor: &Arc<Redactor>,
) -> Option<SessionOutbox> {
    let services = app.services.as_ref()?;
    let outbox =
        services.session_outbox(SessionFacts { provider: provider(model), ..session_facts(app, id) }, redact_text(redactor));
    // Earlier processes have sent these records; here the records only determine which calls are open.
    let mut state = SessionState::default();
    for record in last_task_records(records) {
        outbox.feed.changes(&[state.apply(record).change], jiff::Timestamp::now());
    }
    Some(outbox)
}

/// Returns the information about a session that is sent to services.
pub(super) fn session_facts(app: &AppContext, id: &SessionId) -> SessionFacts {
    SessionFacts {
        session_id: id.clone(),
        workspace_id: app.workspace_id(),
        workspace: app.workspace.display().to_string(),
        agent: app.parent.as_ref().map(|parent| parent.agent.name.clone()),
        provider: None,
        service_session: app.registration.get().map(RegisteredSession::facts),
    }
}

/// Returns the provider of a model, as in `anthropic` for `anthropic/claude-sonnet-5`.
fn provider(model: &str) -> Option<String> {
    model.split_once('/').map(|(provider, _)| provider.to_owned())
}

pub(super) fn redact_text(redactor: &Arc<Redactor>) -> RedactText {
    let redactor = redactor.clone();
    Arc::new(move |text| redactor.redact(text).text.into_owned())
}

/// State of delivery to a service, for display.
pub(crate) struct ServiceState {
    pub sink: OutboxSink,
    /// Summary of the records waiting for delivery, such as `3 records waiting (12 KB)`.
    pub summary: String,
    /// The last failure, or a note about missing records.
    pub problem: Option<String>,
}

/// Returns the state of each configured service, and of any other service for which records are waiting. Does not
/// change anything.
pub(crate) fn service_states(app: &AppContext) -> Vec<ServiceState> {
    let (configured, disabled) = (configured_sinks(app), disabled_sink(app));
    let stored = match stored_sinks(&app.directories.data) {
        Ok(stored) => stored,
        Err(error) => {
            let problem = Some(error.to_string());
            let summary = "the outbox cannot be read".to_owned();
            return configured
                .into_iter()
                .map(|sink| ServiceState { sink, summary: summary.clone(), problem: problem.clone() })
                .collect();
        }
    };
    let limit = app.services.as_ref().map(Services::limit);
    let is_full = limit.is_some_and(|limit| {
        let counted = stored.iter().filter(|status| limit.sinks.contains(status.sink));
        counted.map(|status| status.bytes).sum::<u64>() >= limit.bytes
    });
    let shown = OutboxSink::ALL.into_iter().filter_map(|sink| {
        let status = stored.iter().find(|status| status.sink == sink);
        let is_configured = configured.contains(&sink);
        let is_pending = status.is_some_and(|status| status.pending > 0);
        let inactive = match (is_configured, disabled == Some(sink)) {
            (false, _) => Some(not_configured(sink)),
            (true, true) => Some(TELEMETRY_DISABLED.to_owned()).filter(|_| is_pending),
            (true, false) => None,
        };
        (is_configured || is_pending).then(|| service_state(sink, status, inactive, is_full && is_configured))
    });
    shown.collect()
}

/// Returns the sinks of the configured services, including telemetry that is disabled by the environment.
pub(crate) fn configured_sinks(app: &AppContext) -> Vec<OutboxSink> {
    let mut sinks = app.services.as_ref().map(Services::sinks).unwrap_or_default();
    sinks.extend(disabled_sink(app));
    sinks.extend(app.settings.workspace_store.as_ref().map(|_| OutboxSink::Workspace));
    sinks
}

/// Returns the sink that is configured but disabled by the environment variable `OTEL_SDK_DISABLED`.
pub(crate) fn disabled_sink(app: &AppContext) -> Option<OutboxSink> {
    let telemetry = app.settings.services.telemetry.as_ref().map(|_| OutboxSink::Telemetry)?;
    let is_active = app.services.as_ref().is_some_and(|services| services.sinks().contains(&telemetry));
    (!is_active).then_some(telemetry)
}

/// Message that explains why telemetry records are waiting although telemetry is configured.
pub(crate) const TELEMETRY_DISABLED: &str = "`OTEL_SDK_DISABLED` turns telemetry off; unset it, and run `aye sync`";

/// Explains why records are waiting for a service that is not configured, and what the user can do.
pub(crate) fn not_configured(sink: OutboxSink) -> String {
    format!(
        "the service is not configured; configure it again, or run `aye sync` with the `--profile` that configures it; `aye sync \
         --drop {}` deletes the waiting records",
        sink.as_str()
    )
}

/// Describes the state of a service. `inactive` is the reason why records are waiting although no delivery has failed.
fn service_state(sink: OutboxSink, status: Option<&SinkStatus>, inactive: Option<String>, is_full: bool) -> ServiceState {
    let Some(status) = status else { return ServiceState { sink, summary: "no records yet".to_owned(), problem: None } };
    let mut summary = match (status.pending, status.delivered) {
        (0, Some(time)) => format!("all records are delivered, the last one at {time:.0}"),
        (0, None) => "no records waiting".to_owned(),
        (1, _) => format!("1 record waiting ({})", size(status.bytes)),
        (count, _) => format!("{count} records waiting ({})", size(status.bytes)),
    };
    if status.dropped > 0 {
        let _ = write!(summary, ", {} dropped so far", status.dropped);
    }
    let mut problems: Vec<String> = inactive.into_iter().collect();
    if is_full {
        problems.push("the outbox has reached its limit".to_owned());
    }
    if status.missing > 0 {
        problems.push(format!("{} records are missing: they did not fit in the outbox, or were deleted", status.missing));
    }
    if let Some(error) = status.error.as_ref().filter(|_| status.pending > 0) {
        let next = status.next_attempt.map(|time| format!(", next attempt at {time:.0}")).unwrap_or_default();
        problems.push(format!("attempt {} failed: {error}{next}", status.attempts));
    }
    ServiceState { sink, summary, problem: Some(problems.join("; ")).filter(|problem| !problem.is_empty()) }
}

/// Returns the rows on services to show for `/status`.
pub(super) fn service_rows(app: &AppContext) -> Vec<(String, String)> {
    let row = |state: ServiceState| {
        let problem = state.problem.map(|problem| format!("; {problem}")).unwrap_or_default();
        (state.sink.as_str().to_owned(), format!("{}{problem}", state.summary))
    };
    let registration = app.registration.get().map(RegisteredSession::rows).unwrap_or_default();
    service_states(app).into_iter().map(row).chain(registration).collect()
}

/// If a run has a data directory of its own, moves its outbox rows to the user's store, from which they are delivered
/// the next time aye starts.
pub(super) fn transfer_outbox(app: &AppContext, store: &Store) {
    let shared = &app.directories.shared;
    if app.services.is_none() || *shared == app.directories.data {
        return;
    }
    if let Err(error) = Store::open(shared).and_then(|shared| store.move_outbox(&shared)) {
        tracing::warn!(%error, "cannot store the records that wait for services");
    }
}
