//! Runs previews in the background. Each preview can be stopped individually, and none outlives the session.

use super::call_context::CallContext;
use crate::agent::limits::CHANNEL_DEPTH;
use crate::agent::turn::Input;
use crate::policy::PreviewPermit;
use crate::ports::{Plan, RunContext};
use crate::protocol::{ErrorCode, ToolCall, ToolError};
use std::collections::HashMap;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Running previews, by ticket.
#[derive(Default)]
pub(super) struct Previews {
    tokens: HashMap<u64, CancellationToken>,
    work: JoinSet<()>,
}

impl Previews {
    pub(crate) fn start(&mut self, context: &CallContext, index: usize, plan: Plan, permit: PreviewPermit, ticket: u64) {
        let (router, inputs) = (context.router(), context.inputs());
        let (stopped, interrupt) = (context.kill_token().child_token(), context.interrupt_token().child_token());
        let relay = context.output(index, stopped.clone());
        let progress = context.progress(plan.call.tool_call_id.clone(), stopped.clone());
        self.tokens.insert(ticket, stopped.clone());
        self.work.spawn(async move {
            let (output, chunks) = mpsc::channel(CHANNEL_DEPTH);
            let context = RunContext {
                tool_call_id: None,
                output,
                progress,
                kill: stopped.clone(),
                interrupt: interrupt.clone(),
                background: CancellationToken::new(),
                max_bytes: usize::MAX,
            };
            let stop = stopped.child_token();
            let work = tokio::spawn(async move {
                let plan = router.preview(plan, permit, context).await?;
                let mut hooks = router.add_hooks_to_effects(plan, stop.clone());
                tokio::select! {
                    done = &mut hooks => done,
                    () = interrupt.cancelled() => {
                        stop.cancel();
                        hooks.await
                    }
                }
            });
            // Any further output from an abandoned preview would be attributed to another call.
            tokio::select! {
                () = relay.forward(chunks) => {}
                () = stopped.cancelled() => {}
            }
            let outcome = work.await.unwrap_or_else(|error| {
                tracing::error!(task = %error.id(), "a tool panicked in a preview");
                Err(ToolError::new(ErrorCode::ToolExecutionFailed, "the preview crashed; nothing was changed"))
            });
            let _ = inputs.send(Input::Previewed { index, ticket, outcome }).await;
        });
    }

    /// Opens the layer that a call in an earlier process left behind.
    pub(crate) fn reopen(&mut self, context: &CallContext, index: usize, call: ToolCall, digest: String, ticket: u64) {
        let (router, inputs) = (context.router(), context.inputs());
        self.work.spawn(async move {
            let outcome = router.reopen_layer(call, digest).await;
            let _ = inputs.send(Input::Previewed { index, ticket, outcome }).await;
        });
    }

    pub(crate) fn stop(&mut self, ticket: u64) {
        if let Some(token) = self.tokens.remove(&ticket) {
            token.cancel();
        }
    }

    pub(crate) fn on_ended(&mut self, ticket: u64) {
        self.tokens.remove(&ticket);
        while self.work.try_join_next().is_some() {}
    }

    /// Stops all previews and waits until they have ended.
    pub(crate) async fn end(&mut self) {
        self.tokens.drain().for_each(|(_, token)| token.cancel());
        while self.work.join_next().await.is_some() {}
    }
}
