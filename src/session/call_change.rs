//! Changes to calls in the open step, derived from records.

use crate::ports::EditedCommand;
use crate::protocol::{Action, Approval, CallHooks, Decision, Proposal, Resolution, ToolCall, ToolResult};

/// Change that a record makes to a call.
#[derive(Debug)]
pub(crate) enum CallChange<'r> {
    /// The pre-call hooks ran.
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
    /// The policy denied a call.
    Refused {
        rule: &'r str,
        reason: &'r str,
    },
    /// The call was planned again because its files had changed.
    Renewed,
    /// The call's effects could not be applied because files had changed.
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
    /// The call ended because the sandbox blocked access.
    Blocked,
    Finished {
        result: &'r ToolResult,
        latency_ms: u64,
        /// Changes that were last shown to the user; `None` if the call failed or proposed none.
        proposal: Option<Proposal>,
    },
    /// The user chose how to proceed with a call whose outcome is unknown.
    Resolved {
        resolution: Resolution,
    },
}
