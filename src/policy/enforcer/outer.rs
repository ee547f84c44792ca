//! Combines a session's verdict with that of its parent session. The stricter verdict applies.

use super::Explanation;
use crate::policy::permit::UnaskedConditions;
use crate::protocol::{ApproveWhen, VerdictKind};

/// Returns the stricter of two verdicts on the same actions, with the conditions of both.
pub(super) fn stricter(own: Explanation, outer: Explanation) -> Explanation {
    let (kept, other) = if rank(outer.verdict) > rank(own.verdict) { (outer, own) } else { (own, outer) };
    let asks_both = kept.verdict == VerdictKind::Ask && other.verdict == VerdictKind::Ask;
    let before = [kept.approve, other.approve].contains(&Some(ApproveWhen::Before));
    let hosts = kept.hosts.iter().filter(|host| asks_both && other.hosts.contains(host)).cloned().collect();
    Explanation {
        risk: kept.risk.max(other.risk),
        critical: kept.critical || other.critical,
        needs: kept.needs.or(other.needs),
        approve: if before { kept.approve.map(|_| ApproveWhen::Before) } else { kept.approve },
        hosts,
        remember: None,
        unasked: UnaskedConditions {
            as_reading: kept.unasked.as_reading || other.unasked.as_reading,
            by_name: kept.unasked.by_name || other.unasked.by_name,
        },
        in_layer: kept.in_layer || other.in_layer,
        by_plan: kept.by_plan || other.by_plan,
        ..kept
    }
}

fn rank(verdict: VerdictKind) -> u8 {
    match verdict {
        VerdictKind::Allow => 0,
        VerdictKind::Ask => 1,
        VerdictKind::Deny => 2,
    }
}
