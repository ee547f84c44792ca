//! What a choice says to the one who asked.

use super::{Act, Answer, Answered, Panel, Question};
use crate::protocol::{Amendment, Approval, Decision};

impl Panel {
    /// Nothing where the choice is none of this question's.
    pub fn answer(&mut self, act: Act, reason: Option<String>) -> Option<Answer> {
        let decide = |approval: &Approval, decision| Some(Answer::Decide(approval.approval_id.clone(), decision));
        match (&mut self.question, act) {
            (Question::Approval(approval), Act::Preview) => Some(Answer::Preview(approval.approval_id.clone())),
            (Question::Approval(approval), Act::Approve) => {
                let amendment = self.hunks.as_ref().and_then(|hunks| hunks.amendment());
                decide(approval, amendment.map_or(Decision::Approved, |amendment| Decision::Amended { amendment }))
            }
            (Question::Approval(approval), Act::First) => {
                let line = approval.amendable.first.as_ref()?.line.clone();
                decide(approval, Decision::Amended { amendment: Amendment::First { line } })
            }
            (Question::Approval(approval), Act::Offline) => decide(approval, Decision::Amended { amendment: Amendment::Offline }),
            (Question::Keep(keeping), Act::Keep(scope)) => {
                let (approval_id, remember) = keeping.remember(scope);
                Some(Answer::Decide(approval_id, Decision::ApprovedAlways { remember }))
            }
            (Question::Approval(approval), Act::Deny | Act::DenyWithWords) => decide(approval, Decision::Denied { reason }),
            (Question::Interrupted { id }, Act::Resolve(resolution)) => Some(Answer::Resolve(id.clone(), resolution)),
            (Question::Trust(trust), Act::Trust(yes)) => trust.take().map(|trust| Answer::Trust(trust, yes)),
            (Question::Mode(mode), Act::Mode(Answered::Yes)) => Some(Answer::Mode(*mode)),
            (Question::Mode(_), Act::Mode(Answered::No)) => Some(Answer::ModeStays),
            (Question::Rewind(rewinding), Act::Rewind(scope)) => {
                let (target, overwrite) = (rewinding.plan.target.clone(), rewinding.overwrite());
                Some(Answer::Rewind { target, scope, overwrite })
            }
            (Question::Rewind(rewinding), Act::Fork) => {
                rewinding.plan.point.as_ref().map(|point| Answer::Fork { before: point.task_id.clone() })
            }
            (Question::Forget(id), Act::Forget(Answered::Yes)) => Some(Answer::Forget(id.clone())),
            (Question::Forget(_), Act::Forget(Answered::No)) => Some(Answer::ForgetNot),
            (Question::Held(held), Act::Held(what)) => held.take().map(|held| Answer::Held(held, what)),
            (
                Question::Approval(_)
                | Question::Keep(_)
                | Question::Reading(_)
                | Question::Interrupted { .. }
                | Question::Trust(_)
                | Question::Mode(_)
                | Question::Held(_)
                | Question::Rewind(_)
                | Question::Setup(_)
                | Question::Asking(_)
                | Question::Forget(_),
                _,
            ) => None,
        }
    }
}
