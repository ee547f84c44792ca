//! Reads the files and resources mentioned in a prompt in the background.

use super::call_context::CallContext;
use super::call_timeout::{CallTimeout, outcome, with_timeout};
use crate::agent::limits::CHANNEL_DEPTH;
use crate::agent::turn::Input;
use crate::policy::Permit;
use crate::ports::{Plan, ProgressSender, RunContext};
use crate::protocol::{ToolCall, ToolResult};
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Plans the calls that read the mentioned files.
pub(super) fn plan(context: &CallContext, ticket: u64, calls: Vec<ToolCall>) {
    let (inputs, router) = (context.inputs(), context.router());
    let plans = calls.into_iter().map(|call| {
        let router = router.clone();
        context.spawn_plan(async move { router.plan(call).await })
    });
    let plans = join_all(plans.collect::<Vec<_>>());
    tokio::spawn(async move {
        let _ = inputs.send(Input::MentionsPlanned { ticket, plans: plans.await }).await;
    });
}

/// Reads the mentioned files. `resources` resolves to the content of the mentioned server resources, which is placed
/// after the content of the files.
pub(super) fn read(
    context: &CallContext,
    ticket: u64,
    runs: Vec<(Plan, Permit)>,
    resources: impl Future<Output = Vec<ToolResult>> + Send + 'static,
) {
    let (router, inputs, kill) = (context.router(), context.inputs(), context.kill_token());
    tokio::spawn(async move {
        let results = runs.into_iter().map(|(plan, permit)| {
            let (router, killed) = (router.clone(), kill.clone());
            let (id, name) = (plan.call.tool_call_id.clone(), plan.tool_name.clone());
            // Reads do not produce output while they run, so the receiver is dropped.
            let (output, _) = mpsc::channel(CHANNEL_DEPTH);
            let kill = killed.child_token();
            let stop = kill.clone();
            // Overlong content is truncated once all files have been read.
            let max_bytes = usize::MAX;
            let background = CancellationToken::new();
            let (progress, interrupt) = (ProgressSender::default(), kill.child_token());
            let context = RunContext { tool_call_id: None, output, progress, kill, interrupt, background, max_bytes };
            let work = tokio::spawn(async move { router.run(plan, permit, context).await });
            let patience = CallTimeout::Short;
            async move { outcome(with_timeout(work, patience, &killed, &stop).await, (id, name), patience, false) }
        });
        let (mut results, resources) = tokio::join!(join_all(results), resources);
        results.extend(resources);
        let _ = inputs.send(Input::MentionsRead { ticket, results }).await;
    });
}
