//! Hooks of a session: programs that run at its events. They can restrict calls, rewrite them before they are judged,
//! and add context.

use super::BoxFuture;
use crate::protocol::{CallHooks, EventHooks, ToolCall, ToolResult};
use tokio_util::sync::CancellationToken;

/// Event of a session that is not about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookTrigger {
    /// The user sent a prompt. `first`: the first one in this process; `resumed`: the session had messages before it.
    Prompt { text: String, first: bool, resumed: bool },
    /// The session starts, or is resumed, without a prompt.
    SessionStart { resumed: bool },
    /// The model has finished. `repeated`: a hook had made it continue before.
    Stop { response: String, repeated: bool },
    /// A compaction starts.
    Compaction { manual: bool },
    /// The user must act.
    Notification { kind: &'static str, message: String },
}

/// Hooks of a session.
pub(crate) trait Hooks: Send + Sync {
    /// Runs the hooks before a call is planned. A hook that fails denies the call.
    fn before_call(&self, call: ToolCall, stop: CancellationToken) -> BoxFuture<'_, CallHooks>;
    /// Runs the hooks after a call, and adds their messages to the result. The flag tells whether hooks that can run in
    /// a layer have already run.
    fn after_call(&self, call: ToolCall, result: ToolResult, ran_before: (bool, CancellationToken)) -> BoxFuture<'_, ToolResult>;
    /// Runs the hooks of another event.
    fn on_occasion(&self, occasion: HookTrigger, stop: CancellationToken) -> BoxFuture<'_, EventHooks>;
}
