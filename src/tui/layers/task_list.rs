//! List of tasks that run in copies of the workspace (`/tasks`).

use super::{LayerContext, LayerRequest, Reaction, ScreenLayer, ShownList};
use crate::protocol::ListedTask;
use crate::text;
use crate::tui::format::{dollars, format_count};
use crate::tui::interface::TaskProgram;
use crate::tui::picker::{Column, Picker, Row};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const COLUMNS: &[Column] = &[
    Column { head: "task", is_number: false, rank: 0 },
    Column { head: "state", is_number: false, rank: 0 },
    Column { head: "age", is_number: true, rank: 2 },
    Column { head: "cost", is_number: true, rank: 1 },
    Column { head: "files", is_number: true, rank: 1 },
    Column { head: "prompt", is_number: false, rank: 0 },
];
/// Number of characters shown of a task ID.
const ID_DIGITS: usize = 8;

pub(crate) struct TaskList(Picker);

impl TaskList {
    pub(crate) fn new(tasks: &[ListedTask]) -> Self {
        let mut list = Self(Picker::new("Tasks", COLUMNS).with_last_truncated().with_rows_requested());
        list.set_rows(task_rows(tasks));
        list
    }
}

impl ScreenLayer for TaskList {
    fn list(&mut self) -> Option<&mut Picker> {
        Some(&mut self.0)
    }

    fn choose(&mut self, row: &str) -> Reaction {
        Reaction::Request(LayerRequest::RunTaskProgram(row.to_owned(), TaskProgram::Open))
    }

    fn on_other_key(&mut self, key: KeyEvent) -> Reaction {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(id) = self.0.highlighted_as_drawn().filter(|_| ctrl).map(|row| row.key.clone()) else {
            return Reaction::Pass;
        };
        Reaction::Request(match key.code {
            KeyCode::Char('t') => LayerRequest::RunTaskProgram(id, TaskProgram::Diff),
            KeyCode::Char('a') => LayerRequest::RunTaskProgram(id, TaskProgram::Keep),
            KeyCode::Char('r') => LayerRequest::ResumeTask(id),
            KeyCode::Char('x') => LayerRequest::StopTask(id),
            _ => return Reaction::Pass,
        })
    }

    fn shown_list(&self) -> Option<ShownList> {
        Some(ShownList::Tasks)
    }

    fn hints(&self, _around: LayerContext) -> Vec<&'static str> {
        vec!["enter open", "ctrl+t changes", "ctrl+a apply", "ctrl+x stop", "ctrl+r resume", "esc close"]
    }
}

/// Returns one list row per task.
pub(crate) fn task_rows(tasks: &[ListedTask]) -> Vec<Row> {
    tasks.iter().map(row).collect()
}

fn row(task: &ListedTask) -> Row {
    let cost = task.cost_usd.map(|cost| format!("{}{}", if task.estimated { "~" } else { "" }, dollars(cost)));
    Row {
        key: task.id.clone(),
        cells: vec![
            short_task_id(task),
            task.state_text(),
            task.age.clone(),
            cost.unwrap_or_default(),
            task.changed_files.map_or_else(|| "?".to_owned(), |count| count.to_string()),
            task_prompt(task),
        ],
        mark: if task.conflicts > 0 { "conflicts" } else { "" },
        lacks: None,
        detail: task_details(task).join("\n"),
    }
}

/// Returns the short form of a task's ID.
pub(crate) fn short_task_id(task: &ListedTask) -> String {
    task.id.chars().take(ID_DIGITS).collect()
}

/// Returns the first line of the prompt that started a task.
pub(crate) fn task_prompt(task: &ListedTask) -> String {
    text::reveal_line(task.prompt.trim().lines().next().unwrap_or_default())
}

/// Returns a task's details as lines of text.
pub(crate) fn task_details(task: &ListedTask) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(waits_for) = &task.waits_for {
        lines.push(format!("waiting for your approval: {}", text::reveal_line(waits_for)));
    }
    if let Some(check) = &task.check {
        lines.push(format!("check {}", text::reveal_line(check)));
    }
    if task.conflicts > 0 {
        let count = usize::try_from(task.conflicts).unwrap_or(usize::MAX);
        lines.push(format!("{} also changed in the workspace", format_count(count, "file")));
    }
    if let Some(branch) = &task.branch {
        lines.push(format!("branch {}", text::reveal_line(branch)));
    }
    lines
}
