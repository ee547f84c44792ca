//! Background commands: starting, listing and stopping them.

use super::draft::take_draft;
use crate::protocol::{CallId, Command, RunningCommand, RunningState};
use crate::text;
use crate::tui::model::{Activity, UiEffect, UiModel};
use crate::tui::picker::Row;
use crate::tui::transcript::{Card, NoteTone, TranscriptEntryKind};

/// Moves the running command to the background. Returns `false` if the task is not running a command.
pub(crate) fn background(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let words = if is_running_command(model) {
        "moved to the background · /ps to list"
    } else if is_running_in_layer(model) {
        "the copy is discarded; approve to restart the command in the background"
    } else {
        return false;
    };
    effects.push(UiEffect::Send(Command::Background { tool_call_id: None }));
    model.show_toast(words, now);
    true
}

/// Returns whether the task is waiting for a command that runs in a copy of the workspace and can restart in the
/// background.
fn is_running_in_layer(model: &UiModel) -> bool {
    layers(model).any(Card::is_running)
}

/// Returns whether a command has been running in a copy of the workspace for long enough to offer a restart in the
/// background.
pub(crate) fn is_running_long_in_layer(model: &UiModel, now: u64) -> bool {
    layers(model).any(|card| card.offers_background(now))
}

/// Returns the cards of running commands that run in a copy of the workspace.
fn layers(model: &UiModel) -> impl Iterator<Item = &Card> {
    running_calls(model).iter().filter_map(|(id, _)| model.transcript.card(id)).filter(|card| card.is_layer)
}

/// Returns whether the task is waiting for a running command.
pub(crate) fn is_running_command(model: &UiModel) -> bool {
    running_calls(model).iter().any(|(_, summary)| summary.starts_with("$ "))
}

/// Returns the IDs and summaries of the task's running calls.
fn running_calls(model: &UiModel) -> &[(CallId, String)] {
    match &model.task.activity {
        Activity::Running { calls } => calls,
        Activity::Idle
        | Activity::Thinking
        | Activity::Answering
        | Activity::Calling { .. }
        | Activity::Retrying(_)
        | Activity::Compacting { .. }
        | Activity::Stopping => &[],
    }
}

/// Returns one list row per background command, for `/ps`.
pub(crate) fn rows(model: &UiModel) -> Vec<Row> {
    let row = |command: &RunningCommand| {
        let line = text::clean_line(&command.line);
        let started = command.since.strftime("started at %H:%M UTC");
        let last = text::clean_line(&command.last_line);
        let output = if last.trim().is_empty() { "no output yet".to_owned() } else { format!("last output: {last}") };
        Row {
            key: command.id.clone(),
            cells: vec![text::clean_line(&command.id), state(command), line.clone()],
            mark: "",
            lacks: None,
            detail: format!("{line}\n{}, {started}\n{output}", state(command)),
        }
    };
    model.info.commands.iter().map(row).collect()
}

/// Returns the list of background commands as text for line mode.
pub(crate) fn to_text(model: &UiModel) -> String {
    let mut lines = vec!["background sessions and commands (/stop ID stops one)".to_owned()];
    for command in &model.info.commands {
        lines.push(format!("{}  {}  {}", command.id, state(command), command.line));
        if !command.last_line.trim().is_empty() {
            lines.push(format!("    {}", command.last_line));
        }
    }
    lines.iter().map(|line| text::clean_line(line)).collect::<Vec<_>>().join("\n")
}

/// Updates the background commands. For each command that has ended, adds a note, because the command's card is already
/// complete.
pub(crate) fn on_changed(model: &mut UiModel, commands: Vec<RunningCommand>) {
    for one in &commands {
        let card = one.tool_call_id.as_ref().and_then(|id| model.transcript.card_mut(id));
        if let Some(card) = card {
            card.is_in_background = one.state == RunningState::Running;
        }
    }
    let before = std::mem::replace(&mut model.info.commands, commands);
    let ran = |id: &str| before.iter().any(|one| one.id == id && one.state == RunningState::Running);
    let ended = model.info.commands.iter().filter(|one| one.state != RunningState::Running && ran(&one.id));
    let told = ended.map(|one| {
        let tone = if state(one) == "exit 0" { NoteTone::Plain } else { NoteTone::Warning };
        (format!("{} ended, {}: {}", one.id, state(one), text::clean_line(&one.line)), tone)
    });
    for (text, tone) in told.collect::<Vec<_>>() {
        model.transcript.push(TranscriptEntryKind::Note { text, tone });
    }
}

/// Handles `/stop ID`. If the ID is omitted, stops the only running command.
pub(crate) fn stop(model: &mut UiModel, id: &str, now: u64, effects: &mut Vec<UiEffect>) {
    let running: Vec<&RunningCommand> = model.info.commands.iter().filter(|one| one.state == RunningState::Running).collect();
    let found = match (id, running.as_slice()) {
        ("", [only]) => Some(only.id.clone()),
        (id, running) => running.iter().find(|one| one.id == id).map(|one| one.id.clone()),
    };
    let Some(id) = found else {
        if running.is_empty() {
            take_draft(model, now, effects);
            return model.show_toast("nothing is running in the background", now);
        }
        let ids: Vec<&str> = running.iter().map(|one| one.id.as_str()).collect();
        let which = format!("specify which one: {}", ids.join(", "));
        return model.show_toast(which, now);
    };
    take_draft(model, now, effects);
    effects.push(UiEffect::Send(Command::Stop { id }));
}

/// Returns the text of the row above the composer that lists running background commands, or `None` if there are none.
pub(crate) fn status_row(model: &UiModel) -> Option<String> {
    let running: Vec<String> = model
        .info
        .commands
        .iter()
        .filter(|one| one.state == RunningState::Running)
        .map(|one| format!("{} {}", one.id, text::clean_line(&one.line)))
        .collect();
    if running.is_empty() {
        return None;
    }
    Some(format!("{} in the background: {}", running.len(), running.join(&format!(" {} ", model.screen.glyphs.separator))))
}

fn state(command: &RunningCommand) -> String {
    match &command.state {
        RunningState::Running => "running".to_owned(),
        RunningState::Ended { how } => text::clean_line(how),
    }
}
