//! Custom commands: Markdown files whose text becomes a prompt. Some are built into aye.

use super::draft::take_draft;
use super::readiness::{is_ready, wait_for_session};
use super::{menu, queue, servers};
use crate::protocol::CustomCommand;
use crate::text;
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::slash;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

/// Stores the custom commands and reports problems with their files.
pub(crate) fn set_commands(model: &mut UiModel, commands: Vec<CustomCommand>, mut notices: Vec<String>) {
    let (taken, own): (Vec<_>, Vec<_>) = commands.into_iter().partition(|command| slash::is_built_in(&command.name));
    for command in taken {
        let CustomCommand { name, source, .. } = command;
        let notice = format!("`{source}` is ignored: `/{name}` is a built-in command; rename the file");
        if model.menu.refused.insert(source) {
            notices.push(notice);
        }
    }
    model.menu.own = own;
    servers::add_commands(model);
    menu::commands(model);
    for notice in notices {
        let text = text::clean(&notice).trim_end().to_owned();
        model.transcript.push(TranscriptEntryKind::Note { text, tone: NoteTone::Warning });
    }
}

/// Sends the text of the custom command called `name`. Returns `false` if there is no such command.
pub(crate) fn run(model: &mut UiModel, name: &str, arguments: &str, now: u64, effects: &mut Vec<UiEffect>) -> bool {
    let Some(command) = find(model, name) else { return false };
    if servers::run_prompt(model, &command, arguments, now, effects) {
        return true;
    }
    if command.text.is_empty() {
        let source = text::clean(&command.source).into_owned();
        model.show_toast(format!("`{source}` is empty; write a prompt for the model in it"), now);
        return true;
    }
    if command.needs_arguments() && arguments.trim().is_empty() {
        let hint = command.argument_hint.as_deref().map(text::reveal_line).unwrap_or_default();
        model.show_toast(format!("missing argument: `/{} {hint}`", text::reveal_line(&command.name)), now);
        return true;
    }
    if model.info.model_access.is_none() && !model.options.sets_up {
        let prompt = command.expand(arguments);
        take_draft(model, now, effects);
        wait_for_session(model, &prompt, now);
    } else if is_ready(model, now) {
        let prompt = command.expand(arguments);
        // The history contains the command as it was typed.
        take_draft(model, now, effects);
        queue::send(model, prompt, false, effects);
    }
    true
}

fn find(model: &UiModel, name: &str) -> Option<CustomCommand> {
    CustomCommand::built_in(name).or_else(|| model.menu.own.iter().find(|command| command.is_named(name)).cloned())
}
