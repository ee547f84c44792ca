//! `aye sync`: delivers the pending records for all services, or deletes those for a service that is not configured.

use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::session_services::{TELEMETRY_DISABLED, configured_sinks, disabled_sink, not_configured};
use crate::host::session_uploads::SessionUploads;
use crate::host::startup::runtime;
use crate::protocol::{Problem, size};
use crate::services::workspace::PushQueue;
use crate::services::{DrainEnd, DrainResult, push_waiting};
use crate::store::{OutboxSink, Removal, SinkStatus, Store, stored_sinks};
use crate::text::clean;
use serde::Serialize;
use std::fmt::Write as _;

/// Result for one service in the JSON output of `aye sync`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncResult {
    service: &'static str,
    delivered: u64,
    /// Number of records still waiting to be delivered.
    pending: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(app: &AppContext, json: bool) -> Result<Exit, CliError> {
    let (configured, disabled) = (configured_sinks(app), disabled_sink(app));
    let waiting = |status: &SinkStatus| {
        let is_configured = configured.contains(&status.sink);
        let is_orphaned = status.pending > 0 && (!is_configured || disabled == Some(status.sink));
        is_orphaned.then(|| orphan(status, is_configured))
    };
    let orphans: Vec<SyncResult> = stored_sinks(&app.directories.data)?.iter().filter_map(waiting).collect();
    if configured.is_empty() && orphans.is_empty() {
        let problem = Problem::new("no service is configured").hint("set `[services]` in config.toml: see docs/SERVICES.md");
        return Err(CliError::usage(problem));
    }
    let store = Store::open(&app.directories.data)?;
    let runtime = runtime()?;
    let mut results = match &app.services {
        Some(services) => runtime.block_on(services.drain(&store)),
        None => Vec::new(),
    };
    match SessionUploads::open(app, &store) {
        Ok(None) => {}
        Ok(Some(SessionUploads { bucket, local, machine })) => {
            results.push(runtime.block_on(push_waiting(&store, PushQueue { bucket, local, machine })));
        }
        Err(problem) => {
            let end = DrainEnd::Unreadable(problem.one_line());
            results.push(DrainResult { sink: OutboxSink::Workspace, delivered: 0, end });
        }
    }
    let sinks = store.sinks()?;
    let pending =
        |result: &DrainResult| sinks.iter().find(|status| status.sink == result.sink).map_or(0, |status| status.pending);
    let results: Vec<SyncResult> = results
        .iter()
        .map(|result| SyncResult {
            service: result.sink.as_str(),
            delivered: result.delivered,
            pending: pending(result),
            error: error(&result.end),
        })
        .chain(orphans)
        .collect();
    let is_complete = results.iter().all(|result| result.error.is_none());
    if json {
        print_json(&results);
    } else {
        print_text(&clean(&as_text(&results)));
    }
    Ok(if is_complete { Exit::Completed } else { Exit::Failed })
}

/// Returns the result for a service whose records cannot be delivered because it is not configured or is disabled.
fn orphan(status: &SinkStatus, is_configured: bool) -> SyncResult {
    let error = if is_configured { TELEMETRY_DISABLED.to_owned() } else { not_configured(status.sink) };
    SyncResult { service: status.sink.as_str(), delivered: 0, pending: status.pending, error: Some(error) }
}

/// Result of deleting records, in the JSON output of `aye sync`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DroppedRecords<'a> {
    service: &'a str,
    dropped: u64,
    bytes: u64,
}

/// Deletes the records waiting for a service that is not configured.
pub(crate) fn drop_records(app: &AppContext, service: &str, json: bool) -> Result<Exit, CliError> {
    let failed = || Problem::new(format!("cannot delete the records that wait for `{service}`"));
    let Some(sink) = OutboxSink::ALL.into_iter().find(|sink| sink.as_str() == service) else {
        return Err(CliError::usage(failed().because("no service has this name")));
    };
    if configured_sinks(app).contains(&sink) {
        let problem = failed().because("the service is configured").hint("run `aye sync` to deliver them");
        return Err(CliError::usage(problem.hint(format!("remove `services.{service}.url` from config.toml first"))));
    }
    match Store::open(&app.directories.data)?.remove_outbox_rows(sink)? {
        Removal::HeldBy(pid) => {
            let problem = failed().because(format!("process {pid} is delivering them"));
            Err(CliError::failed(problem.hint("try again when that process has ended")))
        }
        Removal::Done { rows, bytes } if json => {
            print_json(&DroppedRecords { service, dropped: rows, bytes });
            Ok(Exit::Completed)
        }
        Removal::Done { rows, bytes } => {
            print_text(&format!("{service}: {} deleted ({})\n", records(rows), size(bytes)));
            Ok(Exit::Completed)
        }
    }
}

fn records(count: u64) -> String {
    if count == 1 { "1 record".to_owned() } else { format!("{count} records") }
}

/// Explains why records are still pending; `None` if delivery did not fail.
fn error(end: &DrainEnd) -> Option<String> {
    match end {
        DrainEnd::Empty | DrainEnd::Stopped => None,
        DrainEnd::HeldBy(pid) => Some(format!("process {pid} is delivering them")),
        DrainEnd::Failed { message, .. } => Some(message.clone()),
        DrainEnd::NotBefore(time) => Some(format!("the next attempt is due at {time:.0}")),
        DrainEnd::Unreadable(error) => Some(error.clone()),
    }
}

fn as_text(results: &[SyncResult]) -> String {
    let mut text = String::new();
    for SyncResult { service, delivered, pending, error } in results {
        let _ = match error {
            None => writeln!(text, "{service}: {} delivered", records(*delivered)),
            Some(error) => {
                writeln!(text, "{service}: {} delivered, {} left: {error}", records(*delivered), records(*pending))
            }
        };
    }
    text
}
