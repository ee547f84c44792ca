//! Blocking work of sessions, in parallel to the conversation.

use super::error::CliError;

/// Runs work that may block on another thread. `worker`: who does the work, for the error if it crashes.
pub(super) async fn off_thread<T: Send + 'static>(
    worker: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CliError::failed(format!("{worker} crashed: {error}")))
}
