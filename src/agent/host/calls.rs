//! The calls of the host: planned and run beside it, their outcomes brought back as inputs.

use super::Host;
use crate::agent::limits::CHANNEL_DEPTH;
use crate::agent::turn::Input;
use crate::policy::Permit;
use crate::policy::redact::Stream;
use crate::ports::{Plan, RunContext};
use crate::protocol::{ErrorCode, ToolCall, ToolError, ToolResult};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

impl Host {
    /// What starts later is not killed with what runs now.
    pub(super) fn kill_tools(&mut self) {
        std::mem::replace(&mut self.kill, CancellationToken::new()).cancel();
    }

    pub(super) fn plan(&self, calls: Vec<(usize, ToolCall)>) {
        let (router, inputs) = (self.router.clone(), self.inputs.clone());
        tokio::spawn(async move {
            let plans = calls.into_iter().map(|(index, call)| {
                let router = router.clone();
                let work = tokio::spawn(async move { router.plan(call).await });
                async move { (index, work.await.unwrap_or_else(|error| Err(unplanned(&error)))) }
            });
            let _ = inputs.send(Input::Planned(futures_util::future::join_all(plans).await)).await;
        });
    }

    pub(super) fn run(&self, index: usize, plan: Plan, permit: Permit) {
        let (router, inputs, kill) = (self.router.clone(), self.inputs.clone(), self.kill.clone());
        let redactor = self.redactor.clone();
        let (id, name) = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
        tokio::spawn(async move {
            let (output, mut chunks) = mpsc::channel(CHANNEL_DEPTH);
            let since = Instant::now();
            let work = tokio::spawn(async move { router.run(plan, permit, RunContext { output, kill }).await });
            let mut stream = Stream::new(redactor);
            while let Some(text) = chunks.recv().await {
                let text = stream.push(&text);
                if !text.is_empty() {
                    let _ = inputs.send(Input::ToolOutput { index, text }).await;
                }
            }
            let text = stream.finish();
            if !text.is_empty() {
                let _ = inputs.send(Input::ToolOutput { index, text }).await;
            }
            let result = work.await.unwrap_or_else(|error| {
                tracing::error!(%error, tool = name, "tool panicked");
                let message = "the tool crashed; whether it did anything is not known, look before you repeat it";
                ToolResult::refused(id, name, ToolError::new(ErrorCode::OutcomeUnknown, message))
            });
            let latency_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let _ = inputs.send(Input::ToolFinished { index, result, latency_ms }).await;
        });
    }
}

fn unplanned(error: &tokio::task::JoinError) -> ToolError {
    tracing::error!(%error, "a tool panicked while it planned");
    ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed before it did anything; do it in another way")
}
