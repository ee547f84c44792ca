//! Changes that the user makes to a proposal: planned, judged again, and reported to the model.

use super::{Call, CallState, Phase, TurnMachine};
use crate::ports::{Edited, Plan, touched};
use crate::protocol::{Action, Amendment, ApprovalId, ErrorCode, EventKind, HunkChoice, PlaceChange, ToolResult};

/// User's changes to a call.
#[derive(Debug, Default)]
pub(super) struct Amended {
    /// Changes in order.
    pub by: Vec<Amendment>,
    /// Approved actions, if the user approved the result of the last change.
    pub yes: Option<Vec<Action>>,
    /// Note for the model, added to the result.
    pub told: Option<String>,
    /// Whether the call was planned again because its files had changed before it ran.
    pub renewed: bool,
    /// Whether another command line was already started for this call.
    pub began: bool,
}

impl Amended {
    /// Adds the note for the model to the result; nothing if the call did not run.
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
    /// Returns the pending approvals, each with the path states that its plan found.
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

    /// Tells a pending approval whether its proposal is outdated.
    pub(super) fn outdated(&mut self, approval_id: ApprovalId, outdated: bool) {
        let waits = |call: &&mut Call| matches!(&call.state, CallState::Asking(pending) if pending.approval_id == approval_id);
        if let Some(tool_call_id) = self.calls_mut().iter_mut().find(waits).map(|call| call.call.tool_call_id.clone()) {
            self.emit(EventKind::ApprovalOutdated { approval_id, tool_call_id, outdated });
        }
    }

    /// Shows the proposed text of a file.
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
    /// Returns what runs if the command line differs from the proposed or started one; `None` if it was edited back.
    pub(super) fn edited(&self, plan: &Plan) -> Option<Edited> {
        let runs = Edited { summary: plan.summary.clone(), actions: plan.actions.clone() };
        let is_another = self.has_another_line() && self.announced.as_ref() != Some(&runs);
        (self.amended.began || is_another).then_some(runs)
    }

    /// Returns whether the last change set the command line back to the proposed one, so that there is nothing to report.
    pub(super) fn is_line_again(&self) -> bool {
        self.amended.by.last().is_some_and(Amendment::is_another_line)
    }

    fn has_another_line(&self) -> bool {
        self.amended.by.iter().any(Amendment::is_another_line)
    }

    /// Uses the edited command, and reports the call in this form from here on.
    pub(super) fn runs_as(&mut self, edited: &Edited) {
        self.amended.began = true;
        self.plan_as(edited);
    }

    /// Sets the actions and paths of the call as planned or edited.
    pub(super) fn plan_as(&mut self, Edited { summary, actions }: &Edited) {
        self.summary.clone_from(summary);
        self.touches = actions.iter().filter_map(touched).collect();
        self.ran = super::side_effects::ran(actions, summary, self.changes);
    }

    pub(super) fn proposes_files(&self) -> bool {
        self.changes && self.proposal.as_ref().is_some_and(|proposal| !proposal.paths.is_empty())
    }

    /// Marks the plan as edited or renewed, for the approval.
    pub(super) fn marks(&self, plan: &mut Plan) {
        plan.amends.offer.renewed = self.amended.renewed;
        if self.has_another_line() {
            plan.amends.offer.edited = self.edited(plan).is_some();
        }
    }
}

/// Returns why an amendment cannot be applied to a plan.
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
            (!offer.offline).then(|| "the command cannot run without network: it has none already, or needs it".to_owned())
        }
    }
}
