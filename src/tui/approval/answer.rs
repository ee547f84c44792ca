//! Conversion of choices into answers for the owner of the dialog.

use super::{Answer, ChoiceAction, Dialog, Question, YesNo};
use crate::protocol::{Amendment, Approval, Decision};

/// Returns the answer for a choice, or `None` if the dialog does not have it.
pub(crate) fn answer(panel: &mut Dialog, act: ChoiceAction, reason: Option<String>) -> Option<Answer> {
    let decide = |approval: &Approval, decision| Some(Answer::Decide(approval.approval_id.clone(), decision));
    match (&mut panel.question, act) {
        (Question::Approval(approval), ChoiceAction::Preview | ChoiceAction::RunAgain) => {
            Some(Answer::Preview(approval.approval_id.clone()))
        }
        (Question::Approval(approval), ChoiceAction::Approve) => {
            let amendment = panel.hunks.as_ref().and_then(|hunks| hunks.amendment());
            decide(approval, amendment.map_or(Decision::Approved, |amendment| Decision::Amended { amendment }))
        }
        (Question::Approval(approval), ChoiceAction::ApproveClean) => decide(approval, Decision::ApprovedInCleanContext),
        (Question::Approval(approval), ChoiceAction::First) => {
            let line = approval.amendable.first.as_ref()?.line.clone();
            decide(approval, Decision::Amended { amendment: Amendment::First { line } })
        }
        (Question::Approval(approval), ChoiceAction::Offline) => {
            decide(approval, Decision::Amended { amendment: Amendment::Offline })
        }
        (Question::Approval(approval), ChoiceAction::Unsandboxed) => {
            decide(approval, Decision::Amended { amendment: Amendment::Unsandboxed })
        }
        (Question::Keep(keeping), ChoiceAction::Keep(scope)) => {
            let (approval_id, remember) = keeping.remember(scope);
            Some(Answer::Decide(approval_id, Decision::ApprovedAlways { remember }))
        }
        (Question::Approval(approval), ChoiceAction::Deny | ChoiceAction::DenyWithWords) => {
            decide(approval, Decision::Denied { reason })
        }
        (Question::Interrupted { id }, ChoiceAction::Resolve(resolution)) => Some(Answer::Resolve(id.clone(), resolution)),
        (Question::Trust(trust), ChoiceAction::Trust(yes)) => trust.take().map(|trust| Answer::Trust(trust, yes)),
        (Question::Mode(mode), ChoiceAction::Mode(YesNo::Yes)) => Some(Answer::Mode(*mode)),
        (Question::Mode(_), ChoiceAction::Mode(YesNo::No)) => Some(Answer::ModeStays),
        (Question::Goal(state), ChoiceAction::Goal(choice)) => Some(Answer::Goal(state.goal.clone(), choice)),
        (Question::Rewind(rewinding), ChoiceAction::Rewind(scope)) => {
            let (target, overwrite) = (rewinding.plan.target.clone(), rewinding.overwrite());
            Some(Answer::Rewind { target, scope, overwrite })
        }
        (Question::Rewind(rewinding), ChoiceAction::Fork) => {
            rewinding.plan.point.as_ref().map(|point| Answer::Fork { before: point.task_id.clone() })
        }
        (Question::Forget(id), ChoiceAction::Forget(YesNo::Yes)) => Some(Answer::Forget(id.clone())),
        (Question::Forget(_), ChoiceAction::Forget(YesNo::No)) => Some(Answer::ForgetNot),
        (Question::Held(held), ChoiceAction::Held(what)) => held.take().map(|held| Answer::Held(held, what)),
        (
            Question::Approval(_)
            | Question::Keep(_)
            | Question::Reading(_)
            | Question::Interrupted { .. }
            | Question::Trust(_)
            | Question::Mode(_)
            | Question::Goal(_)
            | Question::Held(_)
            | Question::Rewind(_)
            | Question::Setup(_)
            | Question::Asking(_)
            | Question::Price(_)
            | Question::Forget(_),
            _,
        ) => None,
    }
}
