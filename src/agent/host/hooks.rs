//! Runs hooks in the background. Their outcomes become inputs for the turn machine.

use super::call_context::CallContext;
use crate::agent::limits::HOOKED_CALLS;
use crate::agent::turn::Input;
use crate::ports::HookTrigger;
use crate::protocol::{CallHooks, CompactionTrigger, EventHooks, EventKind, ToolCall};
use futures_util::StreamExt;
use futures_util::stream;

/// Runs the pre-call hooks for calls that have not been planned yet.
pub(super) fn before_calls(context: &CallContext, calls: Vec<(usize, ToolCall)>) {
    let (inputs, hooks, stop) = (context.inputs(), context.router().hooks(), context.interrupt_token());
    tokio::spawn(async move {
        let run = |(index, call): (usize, ToolCall)| {
            let (hooks, stop) = (hooks.clone(), stop.clone());
            async move {
                match hooks {
                    Some(hooks) => (index, hooks.before_call(call, stop).await),
                    None => (index, CallHooks::default()),
                }
            }
        };
        let hooked = stream::iter(calls).map(run).buffered(HOOKED_CALLS).collect().await;
        let _ = inputs.send(Input::CallsHooked(hooked)).await;
    });
}

/// Runs the hooks for an event that they may block or add context to.
pub(super) fn on_occasion(context: &CallContext, ticket: u64, occasion: HookTrigger) {
    let (inputs, hooks, stop) = (context.inputs(), context.router().hooks(), context.interrupt_token());
    tokio::spawn(async move {
        let outcome = match hooks {
            Some(hooks) => hooks.on_occasion(occasion, stop).await,
            None => EventHooks::default(),
        };
        let _ = inputs.send(Input::Hooked { ticket, outcome }).await;
    });
}

/// Runs the hooks for an event that hooks cannot influence. The session does not wait for them.
pub(super) fn follow(context: &CallContext, kind: &EventKind) {
    let occasion = match kind {
        EventKind::ApprovalRequested(approval) => HookTrigger::Notification {
            kind: "permission_prompt",
            message: format!("aye needs your approval: {}", approval.action_summary),
        },
        EventKind::CompactionStarted { trigger, .. } => HookTrigger::Compaction { manual: *trigger == CompactionTrigger::Asked },
        EventKind::TaskCompleted { .. } => {
            HookTrigger::Notification { kind: "idle_prompt", message: "aye has finished and is waiting for you".to_owned() }
        }
        _ => return,
    };
    let Some(hooks) = context.router().hooks() else { return };
    let stop = context.kill_token();
    tokio::spawn(async move {
        for notice in hooks.on_occasion(occasion, stop).await.notices {
            tracing::warn!(notice, "a hook failed");
        }
    });
}
