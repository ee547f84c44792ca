//! Replacement of the current policy, and denials of calls by a policy.

use super::options::OfferedTools;
use crate::policy::permit::Denial;
use crate::policy::{Enforcer, Verdict};
use crate::protocol::{Action, EventKind, SandboxTier};
use jiff::Timestamp;

/// Sandbox of commands, as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxStatus {
    pub tier: SandboxTier,
    /// Text for the status row: `sandbox on · net off`.
    pub words: String,
    /// Features missing on this system, and how to install them.
    pub missing: Option<String>,
}

impl From<SandboxStatus> for EventKind {
    fn from(SandboxStatus { tier, words, missing }: SandboxStatus) -> Self {
        Self::SandboxInForce { tier, words, missing }
    }
}

/// Policy that replaces the current one, with its tools.
#[derive(Debug)]
pub(crate) struct PolicyChange {
    pub enforcer: Enforcer,
    /// Tools offered to the model under this policy.
    pub tools: OfferedTools,
    /// Description of the sandbox.
    pub sandbox: String,
    /// Description of the sandbox for the status row.
    pub sandbox_status: SandboxStatus,
    /// Policy name for the status row.
    pub name: String,
    /// Description of the change for the user; `None` if only the mode changed.
    pub message: Option<String>,
}

/// Returns the reason why the policy denies a call with these actions.
pub(super) fn denial_for(policy: &Enforcer, tool_name: &str, actions: &[Action], now: Timestamp) -> Option<Denial> {
    match policy.judge_call(tool_name, actions, now) {
        Verdict::Deny(denial) => Some(denial),
        Verdict::Allow(_) | Verdict::Ask(_) => None,
    }
}
