//! Previews: a command runs in a copy-on-write layer, and its changes require approval before they are applied.

use crate::policy::PreviewPermit;
use crate::ports::Plan;
use crate::protocol::{Action, ApprovalId, Effects, PreviewOffer};

/// Preview in progress. The router owns the plan, so this type contains only those parts that later decisions need.
#[derive(Debug)]
pub(super) struct ActivePreview {
    pub ticket: u64,
    pub tool_name: String,
    pub actions: Vec<Action>,
}

/// Parameters for a preview.
pub(super) struct PreviewRequest {
    pub index: usize,
    pub plan: Plan,
    pub permit: PreviewPermit,
    /// Approval for which the preview was requested, if any.
    pub approval_id: Option<ApprovalId>,
    /// Whether the preview runs before any approval.
    pub unasked: bool,
}

/// Returns the reason why a plan cannot be previewed, or `None` if it can.
pub(super) fn no_preview(plan: &Plan) -> Option<String> {
    if plan.effects.as_ref().is_some_and(|effects| effects.conflict.is_none()) {
        return Some("the command already ran in a preview".to_owned());
    }
    match &plan.preview {
        PreviewOffer::Possible => None,
        PreviewOffer::None => Some("the call is not a command".to_owned()),
        PreviewOffer::Impossible { reason } => Some(reason.clone()),
    }
}

/// Returns whether a run had no effects and was not blocked from anything.
pub(super) fn is_quiet(effects: &Effects) -> bool {
    effects.is_empty() && effects.refused.is_empty() && effects.denied.is_empty()
}
