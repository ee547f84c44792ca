//! Files that a prompt names, planned and read beside the host.

use super::Host;
use super::calls::{Patience, in_time, late, unplanned};
use crate::agent::limits::CHANNEL_DEPTH;
use crate::agent::turn::Input;
use crate::policy::Permit;
use crate::ports::{Plan, RunContext};
use crate::protocol::{ErrorCode, ToolCall, ToolError, ToolResult};
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

impl Host {
    pub(super) fn plan_mentions(&self, ticket: u64, calls: Vec<ToolCall>) {
        let (router, inputs) = (self.router.clone(), self.inputs.clone());
        tokio::spawn(async move {
            let plans = calls.into_iter().map(|call| {
                let router = router.clone();
                let work = tokio::spawn(async move { router.plan(call).await });
                async move {
                    let planned = in_time(work, Patience::Short, &CancellationToken::new()).await;
                    planned.map_or_else(|| Err(late()), |done| done.unwrap_or_else(unplanned))
                }
            });
            let plans = join_all(plans).await;
            let _ = inputs.send(Input::MentionsPlanned { ticket, plans }).await;
        });
    }

    pub(super) fn read_mentions(&self, ticket: u64, runs: Vec<(Plan, Permit)>) {
        let (router, inputs, kill) = (self.router.clone(), self.inputs.clone(), self.kill.child_token());
        tokio::spawn(async move {
            let results = runs.into_iter().map(|(plan, permit)| {
                let (router, kill) = (router.clone(), kill.clone());
                let (id, name) = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
                // Nobody listens: what reads prints nothing while it does.
                let (output, _) = mpsc::channel(CHANNEL_DEPTH);
                let stop = kill.clone();
                let context = RunContext { tool_call_id: None, output, kill, background: CancellationToken::new() };
                let work = tokio::spawn(async move { router.run(plan, permit, context).await });
                async move {
                    match in_time(work, Patience::Short, &stop).await {
                        Some(Ok(result)) => result,
                        Some(Err(error)) => {
                            tracing::error!(%error, tool = name, "tool panicked");
                            let error = ToolError::new(ErrorCode::ToolExecutionFailed, "the tool crashed");
                            ToolResult::refused(id, name, error)
                        }
                        None => ToolResult::refused(id, name, late()),
                    }
                }
            });
            let results = join_all(results).await;
            let _ = inputs.send(Input::MentionsRead { ticket, results }).await;
        });
    }
}
