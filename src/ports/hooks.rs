//! Session hooks: programs that aye runs on session events. Hooks can restrict calls, rewrite them before the policy
//! judges them, and add context for the model.

use super::BoxFuture;
use crate::protocol::{CallHooks, EventHooks, ToolCall, ToolResult};
use tokio_util::sync::CancellationToken;

/// Session event that does not concern a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HookTrigger {
    /// The user sent a prompt. `first` is set for the first prompt in this process, and `resumed` if the session
    /// already contained messages.
    Prompt { text: String, first: bool, resumed: bool },
    /// The session was started or resumed without a prompt.
    SessionStart { resumed: bool },
    /// The model finished its response. `repeated` is set if a hook has already made the model continue.
    Stop { response: String, repeated: bool },
    /// A compaction is about to start.
    Compaction { manual: bool },
    /// The user's attention is needed.
    Notification { kind: &'static str, message: String },
}

/// Hooks configured for a session.
pub(crate) trait Hooks: Send + Sync {
    /// Runs the hooks that precede planning. If a hook fails, the call is denied.
    fn before_call(&self, call: ToolCall, stop: CancellationToken) -> BoxFuture<'_, CallHooks>;
    /// Runs the hooks that follow a call and adds their messages to the result. `ran_before` says whether the hooks
    /// that can run in a layer have already run, and contains a token that stops the hooks.
    fn after_call(&self, call: ToolCall, result: ToolResult, ran_before: (bool, CancellationToken)) -> BoxFuture<'_, ToolResult>;
    /// Runs the hooks for an event that does not concern a call.
    fn on_occasion(&self, occasion: HookTrigger, stop: CancellationToken) -> BoxFuture<'_, EventHooks>;
}
