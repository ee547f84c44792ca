//! Plans proposed by the model: what approving them allows, and the resulting messages to the model.

use crate::policy::Enforcer;
use crate::protocol::{Action, Coverage, JudgedLine, ProposedPlan, TaskPlan};
use jiff::Timestamp;

pub(super) const REASON: &str = "the model proposes a plan";
/// Note that tells the model that a plan was approved without a user.
pub(super) const UNREVIEWED: &str = "No user reviewed the plan, so it allows nothing. Carry it out as far as the policy allows.";
const APPROVED: &str = "The user approved the plan. Carry it out now.";
const APPROVED_IN_PLAN_MODE: &str =
    "The user approved the plan, but plan mode stays on here: do not change anything until the user leaves it.";

/// Prepares a plan for display, including what its approval would allow.
pub(super) fn proposed(plan: &TaskPlan, policy: &Enforcer, leaves_plan_mode: bool, now: Timestamp) -> ProposedPlan {
    let actions: Vec<Action> = plan.lines.iter().filter_map(|line| line.action.clone().ok()).collect();
    let mut coverage = policy.coverage(&actions, now).into_iter();
    let lines = plan.lines.iter().map(|line| {
        let coverage = match &line.action {
            Ok(_) => {
                let told = coverage.next();
                let told =
                    told.unwrap_or_else(|| Coverage::Asks { reason: "the policy has not evaluated this entry".to_owned() });
                match &line.obstacle {
                    Some(reason) if told == Coverage::Covered => Coverage::Asks { reason: reason.clone() },
                    Some(_) | None => told,
                }
            }
            Err(reason) => Coverage::Asks { reason: reason.clone() },
        };
        JudgedLine { subject: line.subject.clone(), coverage }
    });
    ProposedPlan { text: plan.text.clone(), digest: plan.digest.clone(), lines: lines.collect(), leaves_plan_mode }
}

/// Splits a plan's actions into those shown as covered and all others.
pub(super) fn split(plan: &TaskPlan, shown: &ProposedPlan) -> (Vec<Action>, Vec<Action>) {
    let (mut covered, mut others) = (Vec::new(), Vec::new());
    for (line, shown) in plan.lines.iter().zip(&shown.lines) {
        let Ok(action) = line.action.clone() else { continue };
        if shown.coverage == Coverage::Covered { covered.push(action) } else { others.push(action) }
    }
    (covered, others)
}

/// Returns the note for the model about an approved plan. `edited` is the note about the user's edits, if any.
pub(super) fn approved(shown: &ProposedPlan, stays_in_plan_mode: bool, edited: Option<String>) -> String {
    let told = if stays_in_plan_mode { APPROVED_IN_PLAN_MODE } else { APPROVED };
    let edited = edited.map(|edited| format!("{edited}\n")).unwrap_or_default();
    format!("{edited}{told}\n{}", shown.effect_of_approval())
}

/// Returns the message for the model about a plan that was not approved.
pub(super) fn plan_denial(comment: Option<&str>) -> String {
    match comment {
        Some(comment) => {
            format!("the user has not approved the plan and left a comment: {comment}\nRevise the plan and propose it again.")
        }
        None => "the user has not approved the plan and wants to keep planning; ask what is missing, or end your turn".to_owned(),
    }
}
