//! The calls of the host: planned and run beside it, their outcomes brought back as inputs.

use super::Host;
use crate::agent::limits::{CHANNEL_DEPTH, READ_SECONDS};
use crate::agent::turn::Input;
use crate::policy::Permit;
use crate::policy::redact::Stream;
use crate::ports::{Plan, RunContext};
use crate::protocol::{ErrorCode, ToolCall, ToolError, ToolResult};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

impl Host {
    /// What starts later is not killed with what runs now.
    pub(super) fn kill_tools(&mut self) {
        std::mem::replace(&mut self.kill, CancellationToken::new()).cancel();
    }

    pub(super) fn plan(&self, calls: Vec<(usize, ToolCall)>) {
        let (router, inputs) = (self.router.clone(), self.inputs.clone());
        tokio::spawn(async move {
            let plans =
                calls.into_iter().map(|(index, call)| {
                    let router = router.clone();
                    let work = tokio::spawn(async move { router.plan(call).await });
                    async move {
                        (index, in_time(work, true).await.map_or_else(|| Err(late()), |done| done.unwrap_or_else(unplanned)))
                    }
                });
            let _ = inputs.send(Input::Planned(futures_util::future::join_all(plans).await)).await;
        });
    }

    pub(super) fn run(&self, index: usize, plan: Plan, permit: Permit) {
        let (router, inputs, kill) = (self.router.clone(), self.inputs.clone(), self.kill.clone());
        let redactor = self.redactor.clone();
        let (id, name) = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
        let only_reads = !plan.changes;
        let kill = kill.child_token();
        let stop = kill.clone();
        tokio::spawn(async move {
            let (output, mut chunks) = mpsc::channel(CHANNEL_DEPTH);
            let since = Instant::now();
            let work = tokio::spawn(async move {
                router.run(plan, permit, RunContext { output, kill, background: CancellationToken::new() }).await
            });
            let told = inputs.clone();
            let done = async move {
                let mut stream = Stream::new(redactor);
                while let Some(text) = chunks.recv().await {
                    let text = stream.push(&text);
                    if !text.is_empty() {
                        let _ = told.send(Input::ToolOutput { index, text }).await;
                    }
                }
                let text = stream.finish();
                if !text.is_empty() {
                    let _ = told.send(Input::ToolOutput { index, text }).await;
                }
                work.await
            };
            let result = match in_time(done, only_reads).await {
                Some(Ok(result)) => result,
                Some(Err(error)) => {
                    tracing::error!(%error, tool = name, "tool panicked");
                    let message = "the tool crashed; whether it did anything is not known, look before you repeat it";
                    ToolResult::refused(id, name, ToolError::new(ErrorCode::OutcomeUnknown, message))
                }
                None => {
                    stop.cancel();
                    ToolResult::refused(id, name, late())
                }
            };
            let latency_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let _ = inputs.send(Input::ToolFinished { index, result, latency_ms }).await;
        });
    }
}

/// What came of the work; `None` where only reading was to be done and it took too long.
async fn in_time<T>(work: impl Future<Output = T>, only_reads: bool) -> Option<T> {
    if !only_reads {
        return Some(work.await);
    }
    tokio::time::timeout(Duration::from_secs(READ_SECONDS), work).await.ok()
}

fn late() -> ToolError {
    let message = format!("stopped after {READ_SECONDS} s; nothing was changed, ask for less at once or another place");
    ToolError::new(ErrorCode::ToolExecutionTimeout, message)
}

fn unplanned(error: JoinError) -> Result<Plan, ToolError> {
    tracing::error!(%error, "a tool panicked while it planned");
    Err(ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed before it did anything; do it in another way"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_only_reads_is_given_up_and_what_changes_is_waited_for() {
        let slow = || tokio::time::sleep(Duration::from_secs(10 * READ_SECONDS));
        assert_eq!(in_time(slow(), true).await, None);
        assert_eq!(in_time(slow(), false).await, Some(()));
        assert_eq!(in_time(async { 1 }, true).await, Some(1));
    }
}
