//! Blocking work of commands, outside the runtime threads.

use crate::protocol::{ErrorCode, ToolError};

/// Runs blocking work on a separate thread.
pub(in crate::tools) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    // The crash message may contain a secret; the crash report has it redacted.
    done.map_err(|_| ToolError::new(ErrorCode::ToolExecutionFailed, "internal error: checking or preparing the command crashed"))
}

/// Runs work in the background, outside the runtime if called from it. Work interrupted by a kill is repeated at the
/// next start.
pub(in crate::tools) fn run_in_background(work: impl FnOnce() + Send + 'static) {
    // A runtime that shuts down drops pending work, which then runs at once.
    let work = RunOnDrop(Some(work));
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(work))),
        Err(_) => drop(work),
    }
}

/// Closure that runs when it is dropped.
struct RunOnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for RunOnDrop<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}
