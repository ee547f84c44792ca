//! What a person has done otherwise than it was proposed: planned as they have it, judged again, and told to the model.

use super::calls::Batch;
use super::{Call, CallState, Effect, Machine, Phase};
use crate::policy::Verdict;
use crate::ports::{Durability, Edited, Plan, Record, touched};
use crate::protocol::{Action, Amendment, ApprovalId, ErrorCode, EventKind, HunkChoice, PlaceChange, ToolError, ToolResult};

/// What the person changed of a call.
#[derive(Debug, Default)]
pub(super) struct Amended {
    /// In the order in which they did.
    pub by: Vec<Amendment>,
    /// They said yes to what comes of the last one, for at most these actions.
    pub yes: Option<Vec<Action>>,
    /// The model is told with the result.
    pub told: Option<String>,
    /// The place it was made for had changed when it was to run, so it was made anew once.
    pub renewed: bool,
    /// It was begun as another line before.
    pub began: bool,
}

impl Amended {
    /// What the model is told with what it came to; where nothing was done there is nothing to tell.
    pub(super) fn tell(&self, result: &mut ToolResult) {
        let nothing = result.error.as_ref().is_some_and(|error| {
            matches!(
                error.code,
                ErrorCode::Conflict
                    | ErrorCode::UserDenied
                    | ErrorCode::ApprovalTimeout
                    | ErrorCode::PolicyDenied
                    | ErrorCode::NoApprover
            )
        });
        if let Some(told) = self.told.as_ref().filter(|_| !nothing) {
            let gap = if result.output_text.is_empty() { "" } else { "\n" };
            result.output_text = format!("{told}{gap}{}", result.output_text);
        }
    }
}

impl Machine {
    /// The answer is in the journal before anything is made of it.
    pub(super) fn amend(&mut self, call: &mut Call, index: usize, plan: Plan, amendment: Amendment) {
        call.amended.yes = amendment.is_yes().then(|| plan.actions.clone());
        call.amended.by.push(amendment.clone());
        call.state = CallState::Planning;
        self.commit(Durability::Process);
        self.out.push(Effect::Amend { index, plan, amendment });
    }

    /// Whether the person's yes was about this very call as they have it; then only the policy can still say no.
    pub(super) fn is_answered(call: &mut Call, plan: &Plan) -> bool {
        let yes = call.amended.yes.take();
        yes.is_some_and(|asked| plan.actions.iter().all(|action| asked.contains(action)))
    }

    pub(super) fn run_answered(&mut self, verdict: Verdict, call: &mut Call, index: usize, plan: Plan, batch: &mut Batch) {
        let permit = match verdict {
            Verdict::Deny(denial) => return self.refuse_by_policy(call, &denial),
            Verdict::Ask(question) => question.approve(),
            Verdict::Allow(permit) => permit,
        };
        let (tool_call_id, proposal) = (call.call.tool_call_id.clone(), plan.proposal.clone());
        self.note(Record::Previewed { tool_call_id, proposal });
        self.permit(call, index, plan, permit, batch);
    }

    /// Why a call is asked about that a rule would let pass: the person wrote it.
    pub(super) fn asks_as_edited(call: &Call) -> Option<String> {
        let asks = call.amended.by.last().is_some_and(Amendment::asks);
        asks.then(|| "you changed it".to_owned())
    }

    /// What the person wanted cannot be made of the call; whether it is asked about again as it was proposed.
    pub(super) fn amending_failed(&mut self, call: &mut Call, index: usize, error: &ToolError) -> bool {
        if call.amended.by.is_empty() {
            return false;
        }
        call.amended.by.clear();
        call.amended.yes = None;
        self.notice(format!("what you changed was not done: {}; it is asked again as it was proposed", error.message));
        self.plan_again(call, index);
        true
    }

    /// The place of a change is not what the person saw any more. Nothing was done: it is made for what stands there now, and asked
    /// about again, once.
    pub(super) fn renews(&mut self, call: &mut Call, index: usize, result: &ToolResult) -> bool {
        let conflict = result.error.as_ref().is_some_and(|error| error.code == ErrorCode::Conflict);
        let stopping = self.quitting || self.task.as_ref().is_none_or(|task| task.cancelling);
        if !conflict || stopping || !call.asked || call.amended.renewed || !call.proposes_files() {
            return false;
        }
        self.make_anew(call, index);
        true
    }

    /// For what stands at its places by now; it is asked about again.
    pub(super) fn make_anew(&mut self, call: &mut Call, index: usize) {
        call.amended = Amended { renewed: true, ..Amended::default() };
        let tool_call_id = call.call.tool_call_id.clone();
        self.note(Record::Renewed { tool_call_id });
        self.commit(Durability::Process);
        self.plan_again(call, index);
    }

    /// The questions that wait, each with what its plan found at the places that it would change.
    pub fn asked_about(&self) -> impl Iterator<Item = (&ApprovalId, &[PlaceChange])> {
        let calls = match self.task.as_ref().map(|task| &task.phase) {
            Some(Phase::Working(calls)) => calls.as_slice(),
            Some(Phase::Requesting(_) | Phase::Retrying { .. } | Phase::Compacting | Phase::Paused) | None => &[],
        };
        calls.iter().filter_map(|call| match &call.state {
            CallState::Asking(pending) if !pending.plan.places.is_empty() => {
                Some((&pending.approval_id, pending.plan.places.as_slice()))
            }
            _ => None,
        })
    }

    /// Tells it of a question that still waits.
    pub(super) fn outdated(&mut self, approval_id: ApprovalId, outdated: bool) {
        let waits = |call: &&mut Call| matches!(&call.state, CallState::Asking(pending) if pending.approval_id == approval_id);
        if let Some(tool_call_id) = self.calls_mut().iter_mut().find(waits).map(|call| call.call.tool_call_id.clone()) {
            self.emit(EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated });
        }
    }

    /// Says what the text of a file would be.
    pub(super) fn show_proposed(&mut self, approval_id: &ApprovalId, file: usize) {
        let Some(text) = self.asked_plan(approval_id).and_then(|plan| plan.amends.texts.get(file).cloned()) else {
            return self.notice("there is no text of this proposal to show");
        };
        self.emit(EventKind::ProposedShown { approval_id: approval_id.clone(), file, text });
    }

    fn asked_plan(&mut self, approval_id: &ApprovalId) -> Option<&Plan> {
        self.calls_mut().iter().find_map(|call| match &call.state {
            CallState::Asking(pending) if pending.approval_id == *approval_id => Some(&pending.plan),
            _ => None,
        })
    }
}

impl Call {
    /// What runs, where it is another line than the one that was proposed or began before; a line that was edited back is none.
    pub(super) fn edited(&self, plan: &Plan) -> Option<Edited> {
        let runs = Edited { summary: plan.summary.clone(), actions: plan.actions.clone() };
        let is_another = self.has_another_line() && self.announced.as_ref() != Some(&runs);
        (self.amended.began || is_another).then_some(runs)
    }

    /// The last that the person did was to write its line: where that is the one that was proposed, nothing is to be told of.
    pub(super) fn is_line_again(&self) -> bool {
        self.amended.by.last().is_some_and(Amendment::is_another_line)
    }

    fn has_another_line(&self) -> bool {
        self.amended.by.iter().any(Amendment::is_another_line)
    }

    /// It runs like this, and is told of like this from here on.
    pub(super) fn runs_as(&mut self, edited: &Edited) {
        self.amended.began = true;
        self.plan_as(edited);
    }

    /// What it does and touches, as it was planned or edited.
    pub(super) fn plan_as(&mut self, Edited { summary, actions }: &Edited) {
        self.summary.clone_from(summary);
        self.touches = actions.iter().filter_map(touched).collect();
        self.ran = super::ran::ran(actions, summary, self.changes);
    }

    pub(super) fn proposes_files(&self) -> bool {
        self.changes && self.proposal.as_ref().is_some_and(|proposal| !proposal.paths.is_empty())
    }

    /// As it is said to the one who is asked.
    pub(super) fn marks(&self, plan: &mut Plan) {
        plan.amends.offer.renewed = self.amended.renewed;
        if self.has_another_line() {
            plan.amends.offer.edited = self.edited(plan).is_some();
        }
    }
}

/// Why a plan cannot be had like this.
pub(super) fn no_amendment(plan: &Plan, amendment: &Amendment) -> Option<String> {
    let offer = &plan.amends.offer;
    match amendment {
        Amendment::Hunks { hunks } if hunks.len() != offer.hunks.len() => {
            Some(format!("it has {} hunks, and {} were decided about", offer.hunks.len(), hunks.len()))
        }
        Amendment::Hunks { hunks } if hunks.iter().all(|choice| *choice == HunkChoice::Left) => {
            Some("nothing of it is taken; deny it instead".to_owned())
        }
        Amendment::Hunks { hunks } => {
            let mut fixed = hunks.iter().zip(&offer.hunks).filter(|(choice, _)| **choice != HunkChoice::Taken);
            fixed.find_map(|(_, hunk)| hunk.fixed.clone())
        }
        Amendment::File { file, .. } => (*file >= offer.files.len()).then(|| "there is no such file in it".to_owned()),
        Amendment::Command { line } if line.trim().is_empty() => Some("there is no command".to_owned()),
        Amendment::Command { .. } => offer.command.is_none().then(|| "its command cannot be another one".to_owned()),
        Amendment::First { line } => {
            let offered = offer.first.as_ref().is_some_and(|first| first.line == *line);
            (!offered).then(|| "its first commands cannot run alone".to_owned())
        }
        Amendment::Offline => (!offer.offline).then(|| "it has no network, or does nothing without".to_owned()),
    }
}
