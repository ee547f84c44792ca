//! Quitting aye, with a confirmation if that would stop any work.

use super::draft::save_draft;
use crate::protocol::{Command, RunningState};
use crate::tui::interface::ExitReason;
use crate::tui::model::{UiEffect, UiModel};

/// Window, in milliseconds, within which a second key press quits.
const QUIT_MS: u64 = 3000;

pub(crate) fn quit(model: &mut UiModel, effects: &mut Vec<UiEffect>) {
    save_draft(model, effects);
    effects.push(UiEffect::Send(Command::Quit));
    effects.push(UiEffect::Exit(ExitReason::Quit));
}

/// Quits, or asks for a second key press if work is running or pending.
pub(crate) fn leave(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    if open_work(model).is_empty() { quit(model, effects) } else { ask_to_quit(model, "ctrl+d", now, effects) }
}

/// Returns descriptions of the running and pending work that quitting would stop.
fn open_work(model: &UiModel) -> Vec<String> {
    let counted = |count: usize, one: &str, more: &str| match count {
        0 => None,
        1 => Some(one.to_owned()),
        _ => Some(format!("{count} {more}")),
    };
    let task = model.is_running() && model.dialogs.approvals() == 0;
    let background = model.info.commands.iter().filter(|one| one.state == RunningState::Running).count();
    let open = [
        counted(model.dialogs.approvals(), "1 approval pending", "approvals pending"),
        task.then(|| "a task is running".to_owned()),
        model.reviews.running.is_some().then(|| "a review is running".to_owned()),
        counted(model.task.waiting.len(), "1 message queued", "messages queued"),
        counted(background, "1 background command, stopped on exit", "background commands, stopped on exit"),
    ];
    open.into_iter().flatten().collect()
}

/// Quits if the key was pressed a moment ago. Otherwise, shows a notice that lists the work that quitting would stop.
pub(crate) fn ask_to_quit(model: &mut UiModel, key: &'static str, now: u64, effects: &mut Vec<UiEffect>) {
    if model.keys.quit_pending.is_some_and(|(_, at, _)| now.saturating_sub(at) <= QUIT_MS) {
        return quit(model, effects);
    }
    model.keys.quit_pending = Some((key, now, !open_work(model).is_empty()));
    show_quit_hint(model, key, now);
}

/// Updates the notice about quitting, because the work that it lists may have changed since the key press.
pub(crate) fn refresh_quit_hint(model: &mut UiModel, now: u64) {
    if let Some((key, at, true)) = model.keys.quit_pending
        && now.saturating_sub(at) <= QUIT_MS
    {
        show_quit_hint(model, key, now);
    }
}

fn show_quit_hint(model: &mut UiModel, key: &str, now: u64) {
    let open = open_work(model);
    let open = if open.is_empty() { String::new() } else { format!("{}: ", open.join(", ")) };
    model.show_toast(format!("{open}{key} again to quit"), now);
}
