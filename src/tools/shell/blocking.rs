//! Blocking work of commands, off the threads of the runtime.

use crate::protocol::ErrorCode;
use crate::protocol::ToolError;

/// Does what waits for a disk where waiting harms nobody.
pub(in crate::tools) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    // What a crash says may have a secret in it: the report of it has that, redacted.
    done.map_err(|_| ToolError::new(ErrorCode::ToolExecutionFailed, "internal error: checking or preparing the command crashed"))
}

/// Does what may wait for a disk, beside the runtime where this is a thread of one. What a kill leaves undone is done
/// at the next start.
pub(in crate::tools) fn beside(work: impl FnOnce() + Send + 'static) {
    // A runtime that ends drops what it has not begun: then it is done there and then.
    let work = InAnyCase(Some(work));
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(work))),
        Err(_) => drop(work),
    }
}

/// Work that is done when it is dropped.
struct InAnyCase<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for InAnyCase<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}
