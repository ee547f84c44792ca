//! `aye sync`: delivers the pending records of all services.

use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::session_uploads::SessionUploads;
use crate::host::startup::runtime;
use crate::protocol::Problem;
use crate::services::workspace::PushQueue;
use crate::services::{DrainEnd, DrainResult, push_waiting};
use crate::store::{OutboxSink, Store};
use crate::text::clean;
use serde::Serialize;
use std::fmt::Write as _;

/// Result for one service, in `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncResult {
    service: &'static str,
    delivered: u64,
    /// Number of records that are still pending.
    pending: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(place: &AppContext, json: bool) -> Result<Exit, CliError> {
    if place.services.is_none() && place.settings.workspace_store.is_none() {
        let problem = Problem::new("no service is configured").hint("set `[services]` in config.toml: see docs/SERVICES.md");
        return Err(CliError::usage(problem));
    }
    let store = Store::open(&place.directories.data)?;
    let runtime = runtime()?;
    let mut results = match &place.services {
        Some(services) => runtime.block_on(services.drain(&store)),
        None => Vec::new(),
    };
    match SessionUploads::open(place, &store) {
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
        .collect();
    let is_complete = results.iter().all(|result| result.error.is_none());
    if json {
        print_json(&results);
    } else {
        print_text(&clean(&as_text(&results)));
    }
    Ok(if is_complete { Exit::Completed } else { Exit::Failed })
}

/// Returns the reason why records are still pending, if any are.
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
    let records = |count: u64| if count == 1 { "1 record".to_owned() } else { format!("{count} records") };
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
