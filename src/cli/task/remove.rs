//! `aye task drop`: deletes a task, including its copy of the workspace, its session and its changes.

use crate::host::console::{print_text, warn};
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::tasks::{TaskChanges, TaskDirectory, TaskUse, worktree};
use crate::protocol::{Problem, format_count};

pub(super) fn run(task: &TaskDirectory, force: bool) -> Result<Exit, CliError> {
    let lock = task.lock(TaskUse::Changes)?;
    let id = task.short_id();
    match task.description() {
        Ok(description) => {
            if !force {
                // If the changes cannot be read, assume that there are some.
                let count = TaskChanges::read(task, &description).map(|changes| changes.count());
                let has_changes = match count {
                    Ok(0) => None,
                    Ok(count) => Some(format!(
                        "the task has changes in {} that are not applied",
                        format_count(count as u64, "file", "files")
                    )),
                    Err(error) => Some(error.into_problem().one_line()),
                };
                if let Some(why) = has_changes {
                    let problem = Problem::new(format!("task `{id}` was not deleted")).because(why);
                    let problem = problem.hint(format!("run `aye task keep {id}` to apply them"));
                    return Err(CliError::usage(problem.hint("pass `--force` to delete them")));
                }
            }
            if let Some(branch) = worktree::remove_of(&description)? {
                warn(format!("the branch `{branch}` remains"));
            }
        }
        Err(error) if force => warn(error.into_problem()),
        Err(error) => return Err(error.hint("pass `--force` to delete it anyway")),
    }
    task.remove()?;
    drop(lock);
    print_text(&format!("deleted task {id}\n"));
    Ok(Exit::Completed)
}
