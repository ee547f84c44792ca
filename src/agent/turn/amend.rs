//! Amendments, with which the user changes a proposal. The call is then planned and judged again, and the changes are
//! reported to the model.

use crate::ports::Plan;
use crate::protocol::{Action, Amendment, DiscardedEffect, EffectPart, Effects, ErrorCode, HunkChoice, ToolResult};

/// Changes that the user made to a call.
#[derive(Debug, Default)]
pub(super) struct AppliedAmendments {
    /// Amendments, in the order in which they were made.
    pub by: Vec<Amendment>,
    /// Approved actions, if the user approved the result of the last amendment in advance.
    pub yes: Option<Vec<Action>>,
    /// Note for the model, added to the call's result.
    pub told: Option<String>,
    /// Whether the call was planned again because its files changed before it ran.
    pub renewed: bool,
    /// Whether a different command line has already been started for this call.
    pub began: bool,
}

impl AppliedAmendments {
    /// Adds the note for the model to the result, unless the call did not run.
    pub(super) fn annotate(&self, result: &mut ToolResult) {
        let code = result.error.as_ref().map(|error| error.code);
        let nothing = code.is_some_and(|code| code.is_denial() || code == ErrorCode::Conflict);
        if let Some(told) = self.told.as_ref().filter(|_| !nothing) {
            let gap = if result.output_text.is_empty() { "" } else { "\n" };
            result.output_text = format!("{told}{gap}{}", result.output_text);
        }
    }
}

/// Returns the reason why a selection of effects cannot be applied, or `None` if it can.
fn no_selection(effects: Option<&Effects>, parts: &[EffectPart], digest: &str, discarded: &[DiscardedEffect]) -> Option<String> {
    let Some(effects) = effects else { return Some("the call has no effects to select".to_owned()) };
    if let Some(obstacle) = effects.approval_obstacle() {
        return Some(obstacle);
    }
    if effects.digest != digest {
        return Some("the selection was made for different effects".to_owned());
    }
    let covers = |left: &DiscardedEffect, part: &EffectPart| {
        left.path == part.path && (left.hunks.is_empty() || part.hunk.is_some_and(|hunk| left.hunks.contains(&hunk)))
    };
    for left in discarded {
        if !effects.listed_paths().any(|path| path == left.path) {
            return Some(format!("the effects do not list `{}`", left.path));
        }
        let has = |hunk: &usize| parts.iter().any(|part| part.path == left.path && part.hunk == Some(*hunk));
        if !left.hunks.iter().all(has) {
            return Some(format!("the hunks of `{}` cannot be selected this way", left.path));
        }
    }
    let nothing = parts.iter().all(|part| discarded.iter().any(|left| covers(left, part)));
    nothing.then(|| "nothing was selected; deny the call instead".to_owned())
}

/// Returns the reason why an amendment cannot be applied to a plan, or `None` if it can.
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
        Amendment::Effects { digest, discarded } => no_selection(plan.effects.as_deref(), &offer.effects, digest, discarded),
        Amendment::File { file, .. } => (*file >= offer.files.len()).then(|| "the change does not contain this file".to_owned()),
        Amendment::Command { line } if line.trim().is_empty() => Some("the command is empty".to_owned()),
        Amendment::Command { .. } => offer.command.is_none().then(|| "this tool call has no command to edit".to_owned()),
        Amendment::First { line } => {
            let offered = offer.first.as_ref().is_some_and(|first| first.line == *line);
            (!offered).then(|| "the first commands cannot run on their own".to_owned())
        }
        Amendment::Unsandboxed => (!offer.unsandboxed).then(|| "the command cannot run outside the sandbox here".to_owned()),
        Amendment::Background => Some("a command can be moved to the background only while it runs".to_owned()),
        Amendment::Offline => (!offer.offline)
            .then(|| "the command cannot run without network access: it already has none, or it requires it".to_owned()),
    }
}
