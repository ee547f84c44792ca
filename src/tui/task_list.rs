//! Tasks in copies of the workspace: their states and their list.

use super::format::{dollars, format_count};
use super::picker::{Column, Picker, Row};
use crate::protocol::{ListedTask, ListedTaskState};
use crate::text;

const COLUMNS: &[Column] = &[
    Column { head: "task", is_number: false, rank: 0 },
    Column { head: "state", is_number: false, rank: 0 },
    Column { head: "age", is_number: true, rank: 2 },
    Column { head: "cost", is_number: true, rank: 1 },
    Column { head: "files", is_number: true, rank: 1 },
    Column { head: "prompt", is_number: false, rank: 0 },
];
/// Digits of an ID in the list.
const ID_DIGITS: usize = 8;

/// The tasks of this workspace as last reported, and the list while it is open.
#[derive(Debug, Default)]
pub(crate) struct TaskList {
    tasks: Vec<ListedTask>,
    /// The list, while it has the keyboard.
    pub list: Option<Picker>,
}

impl TaskList {
    /// Returns the task with this ID.
    pub(crate) fn find(&self, id: &str) -> Option<&ListedTask> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// Opens the list.
    pub(crate) fn open(&mut self) {
        let mut picker = Picker::new("Tasks", COLUMNS).with_last_truncated();
        picker.set_rows(self.rows());
        self.list = Some(picker);
    }

    /// Sets the tasks. Returns a notice for each task that stopped working since the last report.
    pub(crate) fn set(&mut self, tasks: Vec<ListedTask>) -> Vec<String> {
        let before = std::mem::replace(&mut self.tasks, tasks);
        let was_running = |id: &str| before.iter().any(|task| task.id == id && task.state == ListedTaskState::Running);
        let ended = self.tasks.iter().filter(|task| task.state != ListedTaskState::Running && was_running(&task.id));
        let notices = ended.filter_map(notice).collect();
        let rows = self.rows();
        if let Some(list) = &mut self.list {
            list.set_rows(rows);
        }
        notices
    }

    /// Returns the tasks as lines, for line mode.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = |task: &ListedTask| {
            let first = format!("{}  {}  {}", short_id(task), task.state.as_str(), prompt(task));
            std::iter::once(first).chain(details(task).into_iter().map(|detail| format!("  {detail}"))).collect::<Vec<_>>()
        };
        self.tasks.iter().flat_map(lines).collect()
    }

    fn rows(&self) -> Vec<Row> {
        let row = |task: &ListedTask| Row {
            key: task.id.clone(),
            cells: vec![
                short_id(task),
                task.state.as_str().to_owned(),
                task.age.clone(),
                task.cost_usd
                    .map_or_else(String::new, |cost| format!("{}{}", if task.estimated { "~" } else { "" }, dollars(cost))),
                task.changed_files.map_or_else(|| "?".to_owned(), |count| count.to_string()),
                prompt(task),
            ],
            mark: if task.conflicts > 0 { "conflicts" } else { "" },
            lacks: None,
            detail: details(task).join("\n"),
        };
        self.tasks.iter().map(row).collect()
    }
}

/// Returns the first digits of the ID of a task.
pub(crate) fn short_id(task: &ListedTask) -> String {
    task.id.chars().take(ID_DIGITS).collect()
}

fn prompt(task: &ListedTask) -> String {
    text::reveal_line(task.prompt.trim().lines().next().unwrap_or_default())
}

/// Returns the details of a task, in lines.
fn details(task: &ListedTask) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(waits_for) = &task.waits_for {
        lines.push(format!("waits for your approval: {}", text::reveal_line(waits_for)));
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

/// Returns the notice about a task that has stopped working.
fn notice(task: &ListedTask) -> Option<String> {
    let (id, prompt) = (short_id(task), prompt(task));
    let state = match task.state {
        ListedTaskState::NeedsYou => "needs you",
        ListedTaskState::Done => "is done",
        ListedTaskState::Failed => "failed",
        ListedTaskState::Interrupted => "was interrupted",
        ListedTaskState::Running | ListedTaskState::Open | ListedTaskState::Stopped => return None,
    };
    Some(format!("task {id} {state} ({prompt}); see /tasks"))
}
