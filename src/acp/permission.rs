//! Approval prompts in the form that editors display, and the interpretation of the editor's response.

use super::calls;
use super::client::Sanitizers;
use crate::protocol::{Amendment, Approval, Decision, DiscardedEffect, GrantChoice, GrantOption, GrantScope};
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse, ToolCallContent,
};
use serde_json::Value;

const ALLOW: &str = "allow";
const REJECT: &str = "reject";
const CLEAN: &str = "clean-context";
const RUN_AGAIN: &str = "run_again";
const ALWAYS: &str = "always-session";
const ALWAYS_HERE: &str = "always-project";
/// ID prefix of an option that approves everything except one path. It is followed by the index of that path.
const WITHOUT: &str = "without-";
/// Maximum number of paths for which to offer options that leave out a single path. With more paths, no such options
/// are offered.
const MAX_SELECTABLE: usize = 4;
/// Maximum length of an option's label in bytes.
const OPTION_BYTES: usize = 160;
const REASON_BYTES: usize = 2_000;
/// Maximum number of commands, and of effects, to list individually.
const MAX_LISTED: usize = 40;

/// Outcome of an approval prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PermissionOutcome {
    Decided(Decision),
    /// The user stopped the entire turn.
    Stopped,
}

/// Returns the options for an approval prompt, such as to allow once, to always allow (using the narrowest rule), or to
/// deny.
pub(crate) fn options(approval: &Approval, looks: Sanitizers) -> Vec<PermissionOption> {
    let mut options = Vec::new();
    if is_conflict(approval) {
        options.push(PermissionOption::new(RUN_AGAIN, "Run again in a copy", PermissionOptionKind::AllowOnce));
        options.push(PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce));
        return options;
    }
    if approval.effects.as_ref().is_none_or(|effects| effects.approval_obstacle().is_none()) {
        let label = if approval.plan.is_some() { "Carry out the plan" } else { "Allow once" };
        options.push(PermissionOption::new(ALLOW, label, PermissionOptionKind::AllowOnce));
    }
    if approval.plan.is_some() {
        options.push(PermissionOption::new(CLEAN, "Carry out in a clean context", PermissionOptionKind::AllowOnce));
    }
    for (at, path) in selectable(approval).into_iter().enumerate() {
        let label = calls::title(&(looks.reveal)(&calls::excerpt(&format!("Allow all but {path}"), OPTION_BYTES)));
        options.push(PermissionOption::new(format!("{WITHOUT}{at}"), label, PermissionOptionKind::AllowOnce));
    }
    if let Some(offer) = approval.always.offers.first() {
        let rules = offer.rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let rules = calls::title(&(looks.reveal)(&calls::excerpt(&rules, OPTION_BYTES)));
        for (id, scope, words) in [
            (ALWAYS, GrantScope::Session, "Always in this session"),
            (ALWAYS_HERE, GrantScope::Project, "Always in this project"),
        ] {
            if can_be_kept(offer, scope) {
                options.push(PermissionOption::new(id, format!("{words}: {rules}"), PermissionOptionKind::AllowAlways));
            }
        }
    }
    options.push(PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce));
    options
}

/// Returns the paths that can be left out individually. Empty if there is only one, or too many to offer an option for
/// each.
fn selectable(approval: &Approval) -> Vec<&str> {
    let effects = approval.effects.as_deref().filter(|effects| effects.approval_obstacle().is_none());
    let paths: Vec<&str> = effects.map(|effects| effects.listed_paths().collect()).unwrap_or_default();
    if (2..=MAX_SELECTABLE).contains(&paths.len()) { paths } else { Vec::new() }
}

/// Returns the decision for each option that leaves out one path, in order.
pub(crate) fn partial_decisions(approval: &Approval) -> Vec<Decision> {
    let digest = approval.effects.as_ref().map(|effects| effects.digest.clone()).unwrap_or_default();
    let without = |path: &str| {
        let discarded = vec![DiscardedEffect { path: path.to_owned(), hunks: Vec::new() }];
        Decision::Amended { amendment: Amendment::Effects { digest: digest.clone(), discarded } }
    };
    selectable(approval).into_iter().map(without).collect()
}

/// Returns whether the effects cannot be applied because files were changed after the command ran.
fn is_conflict(approval: &Approval) -> bool {
    approval.effects.as_ref().is_some_and(|effects| effects.conflict.is_some())
}

fn can_be_kept(offer: &GrantOption, scope: GrantScope) -> bool {
    let asks_still = offer.asks_still.contains(&scope);
    let in_file = scope == GrantScope::Session
        || offer.memory_only.is_none() && offer.places.iter().any(|place| place.scope == scope && place.refused.is_none());
    !asks_still && in_file && offer.refuses(scope).is_none() && !offer.rules_for(scope).is_empty()
}

/// Returns the details that the user needs for the decision. They are displayed after the diffs.
pub(crate) fn contents(approval: &Approval, looks: Sanitizers) -> Vec<ToolCallContent> {
    let reveal = |text: &str| (looks.reveal)(text).into_owned();
    let mut contents = Vec::new();
    if let Some(command) = &approval.command {
        contents.push(calls::code(&reveal(&command.line), "sh"));
        let cwd = reveal(&command.cwd);
        contents.push(calls::text_content(format!("in `{cwd}`; sandbox: {}", reveal(&command.sandbox))));
    }
    if let Some(plan) = &approval.plan {
        contents.push(calls::text_content(reveal(&plan.text)));
        contents.push(calls::text_content(reveal(&plan.effect_of_approval())));
    }
    let mut lines = Vec::new();
    lines.extend(approval.agent.as_ref().map(|agent| format!("Requested by the agent {}", calls::title(&reveal(&agent.name)))));
    lines.extend(approval.description.as_deref().map(reveal));
    if approval.parts.len() > 1 {
        lines.extend(approval.parts.iter().take(MAX_LISTED).map(|part| {
            format!(
                "- {}: {} ({}, risk {})",
                calls::title(&reveal(&part.text)),
                reveal(&part.reason),
                part.verdict.as_str(),
                part.risk.as_str()
            )
        }));
    }
    if let Some(effects) = approval.effects.as_ref().filter(|effects| effects.conflict.is_none()) {
        lines.push("The command already ran in a preview. Allow applies its changes; it does not run again.".to_owned());
        // Only the files listed here are changed.
        lines.extend(effects.files.iter().map(|file| {
            let notes: String = file.notes.iter().flat_map(|note| [" · ".to_owned(), reveal(note)]).collect();
            format!("- {} {}{notes}", file.kind.verb(), calls::title(&reveal(&file.path)))
        }));
        for group in &effects.groups {
            lines.push(format!("- created {} files in {}:", group.files.len(), calls::title(&reveal(&group.folder))));
            lines.extend(group.files.iter().map(|file| format!("  - {}", calls::title(&reveal(file)))));
        }
        lines.extend(effects.unlisted_reason());
    }
    lines.extend(
        approval
            .opens
            .iter()
            .take(MAX_LISTED)
            .map(|place| format!("- approving allows access for this run: {}", reveal(&place.to_string()))),
    );
    lines.extend(approval.next_run());
    lines.extend(approval.proposal.notes.iter().take(MAX_LISTED).map(|note| reveal(note)));
    let critical = if approval.critical { ", critical" } else { "" };
    lines.push(format!(
        "{} (rule: {}; risk {}{critical})",
        reveal(&approval.reason),
        reveal(&approval.rule),
        approval.risk_level.as_str()
    ));
    contents.push(calls::text_content(lines.join("\n")));
    contents
}

/// Determines the outcome from the editor's response. An unrecognized response is treated as a denial. `partial`
/// contains the decision for each option that leaves out one path.
pub(crate) fn parse_outcome(result: Result<RequestPermissionResponse, String>, partial: &[Decision]) -> PermissionOutcome {
    let denied = |reason: Option<String>| PermissionOutcome::Decided(Decision::denied(reason));
    let response = match result {
        Ok(response) => response,
        Err(message) => {
            let message = calls::excerpt(&message, REASON_BYTES);
            return denied(Some(format!("the editor could not show the approval: {message}")));
        }
    };
    let always =
        |scope| PermissionOutcome::Decided(Decision::ApprovedAlways { remember: GrantChoice { scope, offer: 0, until: None } });
    match response.outcome {
        RequestPermissionOutcome::Selected(selected) => match &*selected.option_id.0 {
            ALLOW => PermissionOutcome::Decided(Decision::Approved),
            CLEAN => PermissionOutcome::Decided(Decision::ApprovedInCleanContext),
            RUN_AGAIN => PermissionOutcome::Decided(Decision::Previewed),
            ALWAYS => always(GrantScope::Session),
            ALWAYS_HERE => always(GrantScope::Project),
            REJECT => denied(reason(response.meta.as_ref())),
            other => match decision_for(other, partial) {
                Some(decision) => PermissionOutcome::Decided(decision.clone()),
                None => denied(Some(format!("the editor answered with an unknown option `{}`", calls::excerpt(other, 80)))),
            },
        },
        _ => PermissionOutcome::Stopped,
    }
}

fn decision_for<'a>(option: &str, partial: &'a [Decision]) -> Option<&'a Decision> {
    partial.get(option.strip_prefix(WITHOUT)?.parse::<usize>().ok()?)
}

/// Returns the reason that the user entered for a denial, if the editor supports entering one.
fn reason(meta: Option<&serde_json::Map<String, Value>>) -> Option<String> {
    let meta = meta?;
    let said = ["reason", "message", "feedback"].into_iter().find_map(|key| meta.get(key)?.as_str());
    said.map(str::trim).filter(|reason| !reason.is_empty()).map(|reason| calls::excerpt(reason, REASON_BYTES))
}
