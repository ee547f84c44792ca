//! Rules for commands that are approved by their effects. They apply in sessions, and to calls outside a session.

use super::sandbox_escalation::format_access;
use crate::policy::permit::Denial;
use crate::policy::{Enforcer, Permit, Preview, PreviewPermit, Question, Verdict};
use crate::ports::{LayerEnd, LayerRun, Plan};
use crate::protocol::{Action, EffectKind, Effects, ErrorCode, FileEffect, Mode, PreviewOffer, SandboxAccess, ToolError};
use jiff::Timestamp;

/// Reason for a request to approve the effects of a command.
const ASKED_ABOUT: &str = "the command ran in a copy, and its changes are applied only with your approval";
const KILLED: &str = "The command ran in a copy of the workspace, and its changes there were discarded";

/// How to continue once a command has run in a layer.
#[derive(Debug)]
pub(crate) enum EffectsDecision {
    /// The effects are applied without approval.
    Apply(Permit),
    /// A rule allows the command itself, so its effects need no decision.
    Allowed(Permit),
    /// The effects need approval.
    Ask(Question),
    /// The effects need approval, for this reason, although the mode or the approved plan allows the command.
    AskAnyway(String),
    Deny(Denial),
}

/// Returns the permit to run a command in a layer before it is approved, if the policy wants this and it is possible.
pub(crate) fn layer_permit(verdict: &Verdict, plan: &Plan, policy: &Enforcer) -> Option<PreviewPermit> {
    let wanted = match verdict {
        Verdict::Ask(question) => question.layer(),
        Verdict::Allow(permit) => permit.layer(),
        Verdict::Deny(_) => None,
    };
    let is_possible = matches!(plan.layer, LayerRun::Possible) && plan.preview == PreviewOffer::Possible;
    let may = is_possible && plan.effects.is_none() && plan.doubts.hook.is_none() && policy.preview() != Preview::Never;
    let permit = wanted.filter(|_| may)?;
    // A rule identifies a program by its name, and a different program with the same name must not connect to the
    // rule's hosts.
    Some(if plan.doubts.by_name.is_some() { permit.without_hosts() } else { permit })
}

/// Decides about the effects of a command that ended on its own and was not blocked.
pub(crate) fn decide_effects(
    verdict: Verdict,
    policy: &Enforcer,
    effects: &Effects,
    end: &LayerEnd,
    now: Timestamp,
) -> EffectsDecision {
    let ask = |mut question: Question| {
        ASKED_ABOUT.clone_into(&mut question.reason);
        EffectsDecision::Ask(question)
    };
    let applies = applies_unasked(policy, effects, end, now);
    match verdict {
        Verdict::Ask(question) if applies => question.keep().map_or_else(ask, EffectsDecision::Apply),
        Verdict::Ask(question) => ask(question),
        Verdict::Allow(permit) if permit.layer().is_none() => EffectsDecision::Allowed(permit),
        Verdict::Allow(permit) if applies => EffectsDecision::Apply(permit),
        Verdict::Allow(permit) if permit.is_by_plan() => match effect_beyond_plan(policy, &permit, effects, end, now) {
            None => EffectsDecision::Apply(permit),
            Some(effect) => EffectsDecision::AskAnyway(format!("not in the plan: {effect}; {ASKED_ABOUT}")),
        },
        Verdict::Allow(_) => EffectsDecision::AskAnyway(ASKED_ABOUT.to_owned()),
        Verdict::Deny(denial) => EffectsDecision::Deny(denial),
    }
}

/// Describes the first effect that the approved plan does not cover, as a verb with its object. A plan covers creating
/// and changing the files that it lists or that are arguments of the command.
fn effect_beyond_plan(policy: &Enforcer, permit: &Permit, effects: &Effects, end: &LayerEnd, now: Timestamp) -> Option<String> {
    if let Some(effect) = effects.files.iter().find_map(effect_beyond_edits) {
        return Some(effect);
    }
    let Some(actions) = end.actions.as_ref().filter(|_| effects.unlisted_reason().is_none()) else {
        return Some("changes too many files to check".to_owned());
    };
    match actions.iter().find(|action| !policy.plan_names(permit, action, now)) {
        Some(Action::Write { target }) => Some(format!("writes `{}`", target.given)),
        Some(Action::Delete { target }) => Some(format!("deletes `{}`", target.given)),
        Some(_) => Some("has another effect".to_owned()),
        None if end.beyond_edits || end.beyond_rewind => Some("does more than edit files".to_owned()),
        None => None,
    }
}

/// Describes the effect on a path, as a verb with its object. Returns `None` if a file or directory was created, or if
/// only a file's content or modification time changed.
fn effect_beyond_edits(file: &FileEffect) -> Option<String> {
    let path = &file.path;
    match &file.kind {
        EffectKind::Created { .. } | EffectKind::Changed { .. } | EffectKind::DirectoryCreated => None,
        EffectKind::Deleted { .. } | EffectKind::DirectoryDeleted { .. } => Some(format!("deletes `{path}`")),
        EffectKind::Renamed { from, .. } => Some(format!("moves `{from}` to `{path}`")),
        EffectKind::ModeChanged { .. } if file.is_only_touched() => None,
        EffectKind::ModeChanged { from, to } if from == to => Some(format!("touches `{path}`")),
        EffectKind::ModeChanged { .. } => Some(format!("changes the mode of `{path}`")),
        EffectKind::Linked { .. } => Some(format!("links `{path}`")),
    }
}

/// Returns whether a command is allowed by the mode or the approved plan, and not by a rule.
pub(crate) fn is_by_mode(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Allow(permit) if permit.layer().is_some())
}

/// Returns whether the effects need no approval, because they consist only of build output and modification times, or
/// the mode allows file tools to make the same changes.
fn applies_unasked(policy: &Enforcer, effects: &Effects, end: &LayerEnd, now: Timestamp) -> bool {
    if effects.changes_no_content() {
        return true;
    }
    let is_in_mode = match policy.mode() {
        Mode::Plan | Mode::Ask => false,
        Mode::AutoEdit => !end.beyond_edits && !end.beyond_rewind,
        Mode::Auto => !end.beyond_rewind,
    };
    let Some(actions) = end.actions.as_ref().filter(|actions| is_in_mode && !actions.is_empty()) else { return false };
    effects.unlisted_reason().is_none() && policy.applies_effects(actions, now)
}

/// Returns the reason why a command that was blocked in its layer needs approval before it runs. `hosts` are the hosts
/// that it could connect to.
pub(crate) fn blocked_reason(hosts: &[SandboxAccess], effects: &Effects) -> String {
    let access = if hosts.is_empty() { ", without network," } else { "" };
    format!("in a copy{access} the sandbox blocked {}", format_access(&effects.denied))
}

/// Returns the error for a command that was killed in its layer.
pub(crate) fn killed_error(end: &LayerEnd, effects: &Effects) -> ToolError {
    let (code, how) = match &end.error {
        Some(error) => (error.code, error.message.clone()),
        None => (ErrorCode::ToolExecutionFailed, format!("{}; the output so far follows", effects.ended)),
    };
    ToolError::new(code, format!("{how}. {KILLED}{}.", build_output_clause(effects)))
}

/// Returns a clause about build output that the command wrote directly, to be appended to another clause. Empty if
/// there is no such output.
pub(super) fn build_output_clause(effects: &Effects) -> String {
    let direct = effects.counted.iter().filter(|counted| counted.direct).map(|counted| format!("`{}/`", counted.path));
    let direct: Vec<String> = direct.collect();
    if direct.is_empty() { String::new() } else { format!("; its build output in {} remains", direct.join(", ")) }
}
