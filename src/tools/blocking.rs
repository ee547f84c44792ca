//! Runs blocking work for commands outside the runtime's threads.

use crate::protocol::{ErrorCode, ToolError};

/// Runs blocking work on a separate thread. If the work panics, returns an error.
pub(in crate::tools) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    // The panic message may contain a secret. It is redacted only in the crash report.
    done.map_err(|_| ToolError::new(ErrorCode::ToolExecutionFailed, "internal error: checking or preparing the command crashed"))
}

/// Runs blocking work on a background thread, or directly if there is no runtime. If aye is killed first, the caller
/// must repeat the work at the next start.
pub(in crate::tools) fn run_in_background(work: impl FnOnce() + Send + 'static) {
    // A runtime that shuts down drops pending work, which runs it at once.
    let work = RunOnDrop(Some(work));
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(work))),
        Err(_) => drop(work),
    }
}

/// A closure that runs when it is dropped.
struct RunOnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for RunOnDrop<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}
