//! Commands that concern the policy and the approval mode.

use super::draft::take_draft;
use super::queue;
use super::readiness::is_ready;
use crate::protocol::{Approve, Command, Mode, PolicyLayer};
use crate::text;
use crate::tui::approval::{ModeDialog, mode_dialog};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::picker::Row;
use crate::tui::session_info::ExpiryStage;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};
use std::cmp::Ordering;

/// Text that `/plan GOAL` appends to the goal to form the prompt.
const PLAN_FIRST: &str = "Plan mode is on: change nothing. Explore, ask if you must, then propose a plan with ProposePlan.";
const WATCHED: &str = "the files are watched; /policy reload reloads them now";

pub(crate) const MODES: [Mode; 4] = [Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Auto];

/// Handles `/policy reload`.
pub(crate) fn policy(model: &mut UiModel, what: &str, now: u64, effects: &mut Vec<UiEffect>) {
    match what {
        "reload" => {
            take_draft(model, now, effects);
            effects.push(UiEffect::Send(Command::ReloadPolicy));
        }
        _ => model.show_toast("`/policy` shows the policy in effect, `/policy reload` reloads the files", now),
    }
}

/// Handles `/mode NAME`. Switching to a stricter mode takes effect immediately; switching to a more permissive one
/// requires confirmation.
pub(crate) fn mode(model: &mut UiModel, name: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(mode) = MODES.into_iter().find(|mode| mode.as_str() == name) else {
        let words = match name {
            "" => format!("mode: {}; change it with `/mode` plan, ask, auto-edit or auto", model.info.header.mode.as_str()),
            other => format!("`{}` is not a mode: must be plan, ask, auto-edit or auto", text::reveal_line(other)),
        };
        return model.show_toast(words, now);
    };
    take_draft(model, now, effects);
    model.info.offered_mode_in = None;
    match mode.cmp(&model.info.header.mode) {
        Ordering::Equal => model.show_toast(format!("the mode is already {name}"), now),
        Ordering::Less => effects.push(UiEffect::Send(Command::SetMode { mode })),
        Ordering::Greater => ask_about_mode(model, mode),
    }
}

/// Handles `/plan` and `/plan GOAL` by switching to plan mode and, if there is a goal, sending it as a prompt.
pub(crate) fn plan(model: &mut UiModel, goal: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if goal.is_empty() {
        return mode(model, Mode::Plan.as_str(), now, effects);
    }
    if !is_ready(model, now) {
        return;
    }
    let prompt = format!("{goal}\n\n{PLAN_FIRST}");
    take_draft(model, now, effects);
    if model.info.header.mode != Mode::Plan {
        effects.push(UiEffect::Send(Command::SetMode { mode: Mode::Plan }));
    }
    queue::send(model, prompt, false, effects);
}

/// Opens the dialog that asks for confirmation before a switch to a more permissive mode.
fn ask_about_mode(model: &mut UiModel, mode: Mode) {
    let last_text = model.keys.last_text;
    model.dialogs.forget(|panel| panel.kind.is::<ModeDialog>(), last_text);
    model.dialogs.add(mode_dialog(mode), false, last_text);
    // The user has just requested the switch, and the guard protects against keys of further typing.
    if !model.is_too_small() {
        model.dialogs.focus(model.dialogs.len() - 1, last_text);
    }
}

/// Handles `/approve NAME`. No confirmation is needed, because either way the user approves each command or its
/// effects.
pub(crate) fn approve(model: &mut UiModel, name: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(approve) = Approve::from_name(name) else {
        return model.show_toast("choose what aye asks about: `/approve command` or `/approve effects`", now);
    };
    take_draft(model, now, effects);
    effects.push(UiEffect::Send(Command::SetApprove { approve }));
}

/// Handles shift+tab. Switches to the next stricter mode immediately until the strictest one is reached, then reverses
/// direction. Each switch to a more permissive mode requires confirmation; if the user declines, the direction is
/// reversed again.
pub(crate) fn cycle_mode(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    // The mode is unknown until a session exists.
    if model.info.model_access.is_none() {
        return model.show_toast("starting: try again in a moment", now);
    }
    let current = model.info.header.mode;
    let has_agreed = model.info.offered_mode_in.take().is_some_and(|offered_in| offered_in < current);
    let laxer = MODES.into_iter().find(|mode| *mode > current);
    let stricter = MODES.into_iter().rev().find(|mode| *mode < current);
    match (stricter, laxer) {
        (Some(mode), laxer) if !has_agreed || laxer.is_none() => effects.push(UiEffect::Send(Command::SetMode { mode })),
        (_, Some(mode)) => {
            model.info.offered_mode_in = Some(current);
            ask_about_mode(model, mode);
        }
        (_, None) => {}
    }
}

/// Reports, once, that the policy has expired.
pub(crate) fn report_expiry(model: &mut UiModel, now: u64) {
    let Some((end, ExpiryStage::Over)) = model.info.policy.upcoming_expiry(now) else {
        model.info.policy.over = false;
        return;
    };
    if std::mem::replace(&mut model.info.policy.over, true) {
        return;
    }
    let Some(layer) = model.info.policy.layers.iter().find(|layer| layer.expires_at == Some(end)) else { return };
    let name = layer.bundle_version.as_deref().unwrap_or(layer.scope.as_str());
    let file = layer.file.as_ref().map(|file| format!(" (aye watches {file})")).unwrap_or_default();
    let end = end.strftime("%Y-%m-%d %H:%M UTC");
    let text = format!("policy `{name}` expired on {end}; nothing runs until you renew it: /policy reload{file}");
    model.transcript.push(TranscriptEntryKind::Note { text: text::clean(&text).into_owned(), tone: NoteTone::Warning });
}

/// Returns one list row per policy layer, for `/policy`.
pub(crate) fn rows(model: &UiModel) -> Vec<Row> {
    let layers = model.info.policy.layers.iter();
    layers.enumerate().map(|(number, layer)| row(number, layer)).collect()
}

fn row(number: usize, layer: &PolicyLayer) -> Row {
    let PolicyLayer { scope, bundle_version, expires_at, max_input_tokens, file, rules } = layer;
    let end = expires_at.map(|end| end.strftime("%Y-%m-%d %H:%M UTC").to_string());
    let mut detail: Vec<String> = vec![file.as_deref().map_or_else(|| "part of aye".to_owned(), text::reveal_line)];
    detail.extend(bundle_version.as_deref().map(|version| format!("bundle {}", text::reveal_line(version))));
    detail.extend(end.as_ref().map(|end| format!("until {end}")));
    detail.extend(max_input_tokens.map(|most| format!("at most {most} tokens in a request")));
    detail.extend(rules.iter().map(|rule| text::reveal_line(rule)));
    Row {
        key: number.to_string(),
        cells: vec![
            text::reveal_line(scope),
            rules.len().to_string(),
            bundle_version.as_deref().map(text::reveal_line).unwrap_or_default(),
            end.unwrap_or_default(),
        ],
        mark: "",
        lacks: None,
        detail: detail.join("\n"),
    }
}

/// Returns the reason why a policy file is not in effect, if there is one, and hints about policy files and saved
/// rules.
pub(crate) fn notices(model: &UiModel) -> Vec<String> {
    let broken = model.info.policy.broken.iter().map(|message| format!("not applied: {}", text::clean_line(message)));
    let ways = [WATCHED, "saved rules: /policy grants"].map(str::to_owned);
    broken.chain(ways).collect()
}

/// Returns the policy in effect as text for line mode.
pub(crate) fn to_text(model: &UiModel) -> String {
    let mut lines = vec![format!("policy {}, mode {}", model.info.header.policy, model.info.header.mode.as_str())];
    lines.extend(model.info.policy.layers.iter().map(layer_text));
    lines.extend(model.info.policy.broken.iter().map(|message| format!("not applied: {message}")));
    lines.push(WATCHED.to_owned());
    lines.join("\n")
}

fn layer_text(layer: &PolicyLayer) -> String {
    let file = layer.file.as_ref().map(|file| format!("  {file}")).unwrap_or_default();
    let end = layer.expires_at.map(|end| format!(", until {}", end.strftime("%Y-%m-%d %H:%M UTC"))).unwrap_or_default();
    format!("  {layer}{end}{file}")
}
