//! Runs blocking work on other threads while the conversation continues.

use super::error::CliError;

/// Runs blocking work on another thread. `worker` is the name used in the error if the work panics.
pub(super) async fn off_thread<T: Send + 'static>(
    worker: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| CliError::failed(format!("{worker} crashed: {error}")))
}
