//! Tasks that run in copies of the workspace: the `/task` command and the `/tasks` list.

use super::draft::take_draft;
use super::notes::{note, show_requested};
use crate::protocol::{HostRequest, ListedTask, ListedTaskState, Query};
use crate::tui::interface::TaskProgram;
use crate::tui::layers::{ShownList, TaskList, short_task_id, task_rows};
use crate::tui::model::{UiEffect, UiModel};
use crate::tui::transcript::{NoteTone, TranscriptEntryKind};

const NO_TASKS: &str = "no tasks yet; /task PROMPT starts one";

/// Handles `/task PROMPT`, which starts a task in a copy of the workspace.
pub(crate) fn start(model: &mut UiModel, prompt: &str, now: u64, effects: &mut Vec<UiEffect>) {
    if prompt.is_empty() {
        return model.show_toast("enter a prompt: /task PROMPT; /tasks lists the tasks", now);
    }
    take_draft(model, now, effects);
    model.show_toast("starting a task in a copy of the workspace", now);
    effects.push(UiEffect::Ask(Query::LookUp(HostRequest::StartTask { prompt: prompt.to_owned() })));
}

/// Handles `/tasks`, which opens the task list. Line mode prints it instead.
pub(crate) fn open(model: &mut UiModel, now: u64, effects: &mut Vec<UiEffect>) {
    take_draft(model, now, effects);
    effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Tasks)));
    if model.screen.in_lines {
        let lines = model.tasks.lines();
        let text = if lines.is_empty() { NO_TASKS.to_owned() } else { lines.join("\n") };
        return show_requested(model, TranscriptEntryKind::Note { text, tone: NoteTone::Plain });
    }
    let list = TaskList::new(model.tasks.all());
    model.layers.open(list);
}

/// Stores the tasks and reports those that are no longer running. Closes the list if there are none.
pub(crate) fn set(model: &mut UiModel, tasks: Vec<ListedTask>, now: u64) {
    for notice in model.tasks.set(tasks) {
        note(model, &notice, NoteTone::Plain);
    }
    if model.tasks.all().is_empty() && model.layers.close::<TaskList>().is_some() {
        return model.show_toast(NO_TASKS, now);
    }
    model.layers.set_rows(ShownList::Tasks, || task_rows(model.tasks.all()));
}

/// Hands the terminal over to an external command for the task with this ID.
pub(super) fn run(model: &mut UiModel, id: &str, program: TaskProgram, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(task) = model.tasks.find(id) else { return };
    let refusal = match (program, task.state) {
        (_, ListedTaskState::Open) => Some("is open in another process"),
        (TaskProgram::Keep, ListedTaskState::Running) => Some("is running; ctrl+x stops it"),
        (TaskProgram::Keep | TaskProgram::Diff, _) if task.changed_files == Some(0) => Some("has no changes"),
        _ => None,
    };
    if let Some(why) = refusal {
        let words = format!("task {} {why}", short_task_id(task));
        return model.show_toast(words, now);
    }
    effects.push(UiEffect::RunTask(id.to_owned(), program));
    effects.push(UiEffect::Ask(Query::LookUp(HostRequest::Tasks)));
}

pub(super) fn resume(model: &mut UiModel, id: String, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(task) = model.tasks.find(&id) else { return };
    match task.state {
        ListedTaskState::Stopped | ListedTaskState::Interrupted | ListedTaskState::NeedsYou | ListedTaskState::Failed => {
            model.show_toast(format!("resuming task {}", short_task_id(task)), now);
            effects.push(UiEffect::Ask(Query::LookUp(HostRequest::ResumeTask { id })));
        }
        ListedTaskState::Running | ListedTaskState::Open | ListedTaskState::Done => {
            let words = format!("task {} is {}", short_task_id(task), task.state_text());
            model.show_toast(words, now);
        }
    }
}

pub(super) fn stop(model: &mut UiModel, id: String, now: u64, effects: &mut Vec<UiEffect>) {
    let Some(task) = model.tasks.find(&id) else { return };
    if task.state != ListedTaskState::Running {
        let words = format!("task {} is not running", short_task_id(task));
        return model.show_toast(words, now);
    }
    model.show_toast(format!("stopping task {}", short_task_id(task)), now);
    effects.push(UiEffect::Ask(Query::LookUp(HostRequest::StopTask { id })));
}
