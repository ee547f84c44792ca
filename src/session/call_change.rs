//! Changes of calls in the open step, derived from records.

use crate::ports::EditedCommand;
use crate::protocol::{Action, Approval, CallHooks, Decision, Proposal, Resolution, ToolCall, ToolResult};

/// Change of a call by a record.
#[derive(Debug)]
pub(crate) enum CallChange<'r> {
    /// The hooks before the call ran.
    Hooked {
        hooks: &'r CallHooks,
    },
    Planned {
        call: &'r ToolCall,
        summary: &'r str,
        actions: &'r [Action],
        proposal: Option<&'r Proposal>,
        changes: bool,
    },
    Asked {
        approval: &'r Approval,
    },
    Decided {
        decision: &'r Decision,
    },
    /// The policy denied the call.
    Refused {
        rule: &'r str,
        reason: &'r str,
    },
    /// The call was planned again because its files changed.
    Renewed,
    /// The effects could not be applied because files changed.
    Conflicted,
    PreviewStarted,
    LayerEnded,
    Previewed {
        proposal: Option<&'r Proposal>,
    },
    PreviewDropped,
    Started {
        rule: &'r str,
        edited: Option<&'r EditedCommand>,
    },
    /// Ended after the sandbox blocked access.
    Blocked,
    Finished {
        result: &'r ToolResult,
        latency_ms: u64,
        /// Changes shown last; absent if the preview failed.
        proposal: Option<Proposal>,
    },
    /// The user's decision about a call whose outcome is unknown.
    Resolved {
        resolution: Resolution,
    },
}
