//! What a person has done otherwise than it was proposed: planned as they have it, judged again, and told to the model.

use super::{Call, CallState, Phase, TurnMachine};
use crate::ports::{Edited, Plan, touched};
use crate::protocol::{Action, Amendment, ApprovalId, ErrorCode, EventKind, HunkChoice, PlaceChange, ToolResult};

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

impl TurnMachine {
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
            return self.notice("this proposal has no text to show");
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
        self.ran = super::side_effects::ran(actions, summary, self.changes);
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
            Some(format!("the change has {} hunks, but there are decisions for {}", offer.hunks.len(), hunks.len()))
        }
        Amendment::Hunks { hunks } if hunks.iter().all(|choice| *choice == HunkChoice::Left) => {
            Some("no hunk was selected; deny the call instead".to_owned())
        }
        Amendment::Hunks { hunks } => {
            let mut fixed = hunks.iter().zip(&offer.hunks).filter(|(choice, _)| **choice != HunkChoice::Taken);
            fixed.find_map(|(_, hunk)| hunk.fixed.clone())
        }
        Amendment::File { file, .. } => (*file >= offer.files.len()).then(|| "the change has no such file".to_owned()),
        Amendment::Command { line } if line.trim().is_empty() => Some("the command is empty".to_owned()),
        Amendment::Command { .. } => offer.command.is_none().then(|| "this tool call has no command to edit".to_owned()),
        Amendment::First { line } => {
            let offered = offer.first.as_ref().is_some_and(|first| first.line == *line);
            (!offered).then(|| "the first commands cannot run on their own".to_owned())
        }
        Amendment::Offline => {
            (!offer.offline).then(|| "it cannot run without network: it has none already, or needs it".to_owned())
        }
    }
}
