//! Tasks that run in copies of the workspace, and their states.

use super::layers::{short_task_id, task_details, task_prompt};
use crate::protocol::{ListedTask, ListedTaskState};

/// Tasks of this workspace, as most recently reported.
#[derive(Debug, Default)]
pub(crate) struct ListedTasks {
    tasks: Vec<ListedTask>,
}

impl ListedTasks {
    pub(crate) fn all(&self) -> &[ListedTask] {
        &self.tasks
    }

    /// Returns the task with this ID, if there is one.
    pub(crate) fn find(&self, id: &str) -> Option<&ListedTask> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// Replaces the tasks. Returns a notice for each task that was running before and no longer is, if the user should
    /// know.
    pub(crate) fn set(&mut self, tasks: Vec<ListedTask>) -> Vec<String> {
        let before = std::mem::replace(&mut self.tasks, tasks);
        let was_running = |id: &str| before.iter().any(|task| task.id == id && task.state == ListedTaskState::Running);
        let ended = self.tasks.iter().filter(|task| task.state != ListedTaskState::Running && was_running(&task.id));
        ended.filter_map(notice).collect()
    }

    /// Returns the tasks and their details as lines, for line mode.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = |task: &ListedTask| {
            let first = format!("{}  {}  {}", short_task_id(task), task.state_text(), task_prompt(task));
            std::iter::once(first).chain(task_details(task).into_iter().map(|detail| format!("  {detail}"))).collect::<Vec<_>>()
        };
        self.tasks.iter().flat_map(lines).collect()
    }
}

/// Returns the notice for a task that is no longer running, or `None` if its state requires no notice.
fn notice(task: &ListedTask) -> Option<String> {
    let (id, prompt) = (short_task_id(task), task_prompt(task));
    let state = match task.state {
        ListedTaskState::NeedsYou => "needs you",
        ListedTaskState::Done => "is done",
        ListedTaskState::Failed => "failed",
        ListedTaskState::Interrupted => "was interrupted",
        ListedTaskState::Running | ListedTaskState::Open | ListedTaskState::Stopped => return None,
    };
    Some(format!("task {id} {state} ({prompt}); see /tasks"))
}
