//! Plans calls in the background. The plans become inputs for the turn machine.

use super::call_context::CallContext;
use super::call_timeout::{CallTimeout, with_timeout};
use crate::agent::turn::{Input, PlanResult};
use crate::ports::{Plan, ToolRouter};
use crate::protocol::{Amendment, SandboxAccess, ToolCall, ToolError};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

/// Plans the calls in a response.
pub(super) fn plan(context: &CallContext, calls: Vec<(usize, ToolCall)>) {
    let (inputs, router) = (context.inputs(), context.router());
    let plans = calls.into_iter().map(|(index, call)| {
        let (router, names, hooks, same) = (router.clone(), router.clone(), router.clone(), call.clone());
        let stopped = context.interrupt_token();
        let plan = context.spawn_plan(async move { router.plan(call).await });
        let (killed, nobody) = (context.interrupt_token(), CancellationToken::new());
        async move {
            let plan = with_hooks(plan.await, &*hooks, &stopped).await;
            // The plan of a changing call already lists every path that the call touches.
            let scope = if plan.as_ref().is_ok_and(|plan| plan.changes) {
                Vec::new()
            } else {
                let scope = tokio::spawn(async move { names.scope(same).await });
                let scope = with_timeout(scope, CallTimeout::Short, &killed, &nobody).await;
                scope.ok().and_then(Result::ok).unwrap_or_default()
            };
            PlanResult { index, scope, plan }
        }
    });
    let plans = join_all(plans.collect::<Vec<_>>());
    tokio::spawn(async move {
        let _ = inputs.send(Input::Planned(plans.await)).await;
    });
}

/// Runs the post-call hooks on the call's proposal. The hooks have timeouts of their own.
async fn with_hooks(
    plan: Result<Plan, ToolError>,
    router: &dyn ToolRouter,
    stopped: &CancellationToken,
) -> Result<Plan, ToolError> {
    match plan {
        Ok(plan) => Ok(router.add_hooks(plan, stopped.clone()).await),
        Err(error) => Err(error),
    }
}

/// Plans a call again with additional access and the user's amendments.
pub(super) fn replan_with_access(
    context: &CallContext,
    index: usize,
    call: ToolCall,
    opens: Vec<SandboxAccess>,
    amendments: Vec<Amendment>,
) {
    let (router, hooks) = (context.router(), amendments.is_empty());
    plan_one(context, index, hooks, async move {
        // `plan` also queries the language servers. If the call is amended, the last amendment does so instead.
        let mut plan = if opens.is_empty() && amendments.is_empty() {
            router.plan(call).await?
        } else {
            router.plan_with_access(call, opens).await?
        };
        for amendment in amendments {
            plan = router.amend(plan, amendment).await?;
        }
        Ok(plan)
    });
}

/// Plans an approval's proposal again with an amendment applied.
pub(super) fn amend(context: &CallContext, index: usize, plan: Plan, amendment: Amendment) {
    let router = context.router();
    plan_one(context, index, false, async move { router.amend(plan, amendment).await });
}

/// Plans a single call. `has_hooks` says whether the post-call hooks run on the proposal. They do not run on the
/// user's own edits, so they cannot change them.
fn plan_one(
    context: &CallContext,
    index: usize,
    has_hooks: bool,
    work: impl Future<Output = Result<Plan, ToolError>> + Send + 'static,
) {
    let (inputs, router, stopped) = (context.inputs(), context.router(), context.interrupt_token());
    let plan = context.spawn_plan(work);
    tokio::spawn(async move {
        let plan = plan.await;
        let plan = if has_hooks { with_hooks(plan, &*router, &stopped).await } else { plan };
        let planned = PlanResult { index, scope: Vec::new(), plan };
        let _ = inputs.send(Input::Planned(vec![planned])).await;
    });
}
