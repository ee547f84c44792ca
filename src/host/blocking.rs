//! Blocking work of sessions, run in parallel to the conversation.

use super::error::CliError;

/// Runs blocking work on another thread. `worker`: name of the worker in the error after a panic.
pub(super) async fn off_thread<T: Send + 'static>(
    worker: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CliError::failed(format!("{worker} crashed: {error}")))
}
