//! Starts a command: opens its store, and starts its runtime and its log.

use super::console::{warn, warn_all};
use super::context::AppContext;
use super::error::CliError;
use super::logging;
use crate::store::Store;

/// Opens the store. If it was damaged, reports this immediately.
pub(crate) fn open_store(app: &AppContext) -> Result<Store, CliError> {
    let store = Store::open(&app.directories.data)?;
    warn_all(store.notices());
    Ok(store)
}

/// Number of worker threads. The screen runs on the main thread.
const WORKERS: usize = 2;

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("cannot start: {error}")))
}

/// Starts logging at the level given by `-v`, unless `AYE_LOG` specifies a filter.
pub(crate) fn start_log(app: &AppContext, verbosity: u8) -> logging::Log {
    let by_flag = match verbosity {
        0 => None,
        1 => Some("aye=info"),
        2 => Some("aye=debug"),
        3.. => Some("aye=trace"),
    };
    let (log, problem) =
        logging::start(&app.directories.data, app.environment.get("AYE_LOG").or(by_flag), app.settings.retention.logs_bytes);
    if let Some(message) = problem {
        warn(&message);
    }
    log
}
