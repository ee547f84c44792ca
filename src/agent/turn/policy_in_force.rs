//! Policy and mode in effect, and their replacement while the session runs.

use super::options::Approver;
use super::policy::PolicyChange;
use super::turn_context::TurnContext;
use crate::protocol::{Approve, EventKind, Mode};

/// Switches to another policy. Rules saved for this run remain in effect, and running calls continue.
pub(super) fn replace_policy(change: PolicyChange, cx: &mut TurnContext) {
    cx.policy.replace(change.enforcer);
    let tools = change.tools.names.clone();
    let before = std::mem::replace(&mut cx.options.tools, change.tools);
    cx.options.sandbox = change.sandbox;
    cx.record_policy_change();
    if change.message.is_some() || tools != before.names {
        let layers = cx.policy.layers();
        cx.out.event(EventKind::PolicyInForce { layers, name: change.name, tools, message: change.message });
    }
}

/// Switches to another mode. Returns whether that mode is allowed.
pub(super) fn set_mode(mode: Mode, cx: &mut TurnContext) -> bool {
    if mode > cx.options.laxest {
        cx.out.notice(format!("cannot switch to mode `{}`: only the user may choose a more permissive mode", mode.as_str()));
        return false;
    }
    cx.policy.set_mode(mode);
    cx.record_mode_choice(mode);
    cx.out.event(EventKind::ModeChanged { mode });
    true
}

/// Sets whether commands that no rule allows are approved before they run or by their effects, and reports the
/// setting that results.
pub(super) fn set_approve(approve: Approve, cx: &mut TurnContext) {
    if approve == Approve::Effects && cx.options.approvals.approver == Approver::Nobody {
        return cx.out.notice("cannot set `approve` to effects: only the user may choose a more permissive setting");
    }
    cx.policy.set_approve(approve);
    cx.out.notice(match (approve, cx.policy.approve()) {
        (Approve::Effects, Approve::Command) => {
            "the policy requires `approve = \"command\"`, so aye still asks before each command"
        }
        (_, Approve::Command) => "in this session, aye asks before each command that matches no rule",
        (_, Approve::Effects) => {
            "in this session, commands that match no rule run in a copy first, and aye asks about their effects"
        }
    });
}
