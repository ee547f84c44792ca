//! Replacement of the current policy, and denials of calls by the policy.

use super::options::OfferedTools;
use crate::policy::permit::Denial;
use crate::policy::{Enforcer, Verdict};
use crate::protocol::{Action, EventKind, SandboxTier};
use jiff::Timestamp;

/// State of the command sandbox as shown to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxStatus {
    pub tier: SandboxTier,
    /// Text for the status row, such as `sandbox on · net off`.
    pub words: String,
    /// Features that are missing on this system, with instructions for installing them.
    pub missing: Option<String>,
}

impl From<SandboxStatus> for EventKind {
    fn from(SandboxStatus { tier, words, missing }: SandboxStatus) -> Self {
        Self::SandboxInForce { tier, words, missing }
    }
}

/// Policy that replaces the current one, with the tools available under it.
#[derive(Debug)]
pub(crate) struct PolicyChange {
    pub enforcer: Enforcer,
    /// Tools offered to the model under this policy.
    pub tools: OfferedTools,
    /// Description of the sandbox, shown in approvals.
    pub sandbox: String,
    /// State of the sandbox for the status row.
    pub sandbox_status: SandboxStatus,
    /// Policy name for the status row.
    pub name: String,
    /// Description of the change for the user; `None` if only the mode changed.
    pub message: Option<String>,
}

/// Returns the reason why the policy denies a call with these actions, or `None` if it does not.
pub(super) fn denial_for(policy: &Enforcer, tool_name: &str, actions: &[Action], now: Timestamp) -> Option<Denial> {
    match policy.judge_call(tool_name, actions, now) {
        Verdict::Deny(denial) => Some(denial),
        Verdict::Allow(_) | Verdict::Ask(_) => None,
    }
}
