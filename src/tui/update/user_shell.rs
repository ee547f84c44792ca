//! Shell commands that the user runs with `!command` or `!!command`. The model learns of the former with the next
//! prompt, but not of the latter.

use super::draft::take_draft;
use crate::protocol::{CallId, Command};
use crate::text;
use crate::tui::interface::ModelAccess;
use crate::tui::model::{Activity, UiEffect, UiModel};
use crate::tui::task::RunningUserCommand;
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

const SHARED_LABEL: &str = "you";
const HIDDEN_LABEL: &str = "you, hidden from the model";
const CHECK_LABEL: &str = "goal check";
const TASK_CHECK_LABEL: &str = "check of the task";

/// Returns the shell command in a draft and whether the model will see it, or `None` if the draft is not a shell
/// command.
pub(crate) fn parse_command(draft: &str) -> Option<(&str, bool)> {
    let rest = draft.trim_start().strip_prefix('!')?;
    let (command, shared) = rest.strip_prefix('!').map_or((rest, true), |rest| (rest, false));
    Some((command.trim(), shared))
}

pub(crate) fn run(model: &mut UiModel, command: String, shared: bool, now: u64, effects: &mut Vec<UiEffect>) {
    if command.is_empty() {
        return model.show_toast("missing command: `!git status`; `!!` hides it from the model", now);
    }
    match &model.info.model_access {
        None => return model.show_toast("starting: try again in a moment", now),
        Some(ModelAccess::ReadOnly { .. }) => {
            super::readiness::is_ready(model, now);
            return;
        }
        // Shell commands need no model.
        Some(ModelAccess::Ready | ModelAccess::NoKey { .. }) => {}
    }
    if model.is_running() || model.dialogs.approvals() > 0 {
        return model.show_toast("a task is running: your command stays in the draft until it ends or you stop it with esc", now);
    }
    take_draft(model, now, effects);
    model.transcript.follow_end();
    effects.push(UiEffect::Send(Command::Shell { line: command, shared }));
}

/// Handles the start of a shell command run by the user or of the goal's check.
pub(crate) fn on_started(model: &mut UiModel, id: CallId, command: &str, (shared, check): (bool, bool), now: u64) {
    let is_task_check = !shared && model.info.task_check.as_deref() == Some(command);
    let whose = match (check, shared) {
        (true, _) => CHECK_LABEL,
        (false, true) => SHARED_LABEL,
        (false, false) if is_task_check => TASK_CHECK_LABEL,
        (false, false) => HIDDEN_LABEL,
    };
    model.info.user_command = Some(RunningUserCommand { id: id.clone(), whose, paused: model.task.paused.take() });
    model.task.goes_on = true;
    model.set_activity(Activity::Running { calls: vec![(id, format!("$ {}", text::clean_line(command)))] }, now);
}

/// Returns the label for a call's card if the call is a command run by the user.
pub(crate) fn mark(model: &UiModel, id: &CallId) -> Option<&'static str> {
    model.info.user_command.as_ref().filter(|own| own.id == *id).map(|own| own.whose)
}

/// Handles the end of a shell command. `told` says whether the model will see the command.
pub(crate) fn on_ended(model: &mut UiModel, told: bool) {
    let Some(own) = model.info.user_command.take() else { return };
    model.task.paused = own.paused;
    if own.whose == SHARED_LABEL && !told {
        let text = "the command did not run, so the model does not see it".to_owned();
        model.transcript.push(TranscriptEntryKind::Note { text, tone: NoteTone::Plain });
    }
}
