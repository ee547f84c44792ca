//! State common to all approval prompts: the approval, its time limit, and how its change relates to the file on disk.

use super::DialogAnswer;
use super::amend_field::AmendField;
use super::choices::ChoiceAction;
use super::disk_state::ProposalFreshness;
use crate::protocol::{Amendment, Approval, Decision};
use crate::text;

/// State common to all kinds of approval prompt.
#[derive(Debug)]
pub(crate) struct CallPrompt {
    pub approval: Approval,
    /// Time, in milliseconds, at which the call is denied if it is not answered, or `None` if there is no limit.
    pub ends: Option<u64>,
    pub disk: ProposalFreshness,
    /// Field in which the user edits the proposal, if it is open.
    pub amend_field: Option<AmendField>,
}

impl CallPrompt {
    pub(crate) fn new(approval: Approval) -> Self {
        Self { approval, ends: None, disk: ProposalFreshness::default(), amend_field: None }
    }

    pub(crate) fn decide(&self, decision: Decision) -> Option<DialogAnswer> {
        Some(DialogAnswer::Decide(self.approval.approval_id.clone(), decision))
    }

    /// Returns the answer that an action common to several kinds of prompt produces, or `None` for other actions.
    pub(crate) fn answer(&self, act: ChoiceAction, reason: Option<String>) -> Option<DialogAnswer> {
        let amended = |amendment| self.decide(Decision::Amended { amendment });
        match act {
            ChoiceAction::Preview | ChoiceAction::RunAgain => Some(DialogAnswer::Preview(self.approval.approval_id.clone())),
            ChoiceAction::Approve => self.decide(Decision::Approved),
            ChoiceAction::First => {
                let line = self.approval.amendable.first.as_ref()?.line.clone();
                amended(Amendment::First { line })
            }
            ChoiceAction::Offline => amended(Amendment::Offline),
            ChoiceAction::Unsandboxed => amended(Amendment::Unsandboxed),
            ChoiceAction::Deny | ChoiceAction::DenyWithWords => self.decide(Decision::denied(reason)),
            _ => None,
        }
    }

    pub(crate) fn identity(&self) -> String {
        self.approval.approval_id.to_string()
    }

    /// Returns the call's command line, preceded by its agent's name if it has one: `$ cargo test`, `Agent explore: $
    /// ls`.
    pub(crate) fn command_name(&self) -> Option<String> {
        let line = format!("$ {}", text::reveal_name(&self.approval.command.as_ref()?.line));
        Some(match &self.approval.agent {
            Some(agent) => format!("Agent {}: {line}", text::reveal_line(&agent.name)),
            None => line,
        })
    }
}
