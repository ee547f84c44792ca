//! `aye task keep`: applies changes of a task to the workspace, judged like those of a patch file.

use super::diff::select;
use super::pick;
use crate::cli::apply::{Application, Form, apply_patch};
use crate::host::console::{print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::tasks::{TaskChanges, TaskDirectory, TaskUse};
use crate::protocol::{Problem, format_count};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeepRequest {
    pub id: String,
    /// Files to apply; empty for all.
    pub paths: Vec<String>,
    pub form: KeepForm,
    /// Whether the user chooses the hunks.
    pub pick: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepForm {
    /// Only show the planned changes.
    Check,
    /// Ask on the terminal if a change needs approval.
    Ask,
    /// Approve changes that need approval.
    Yes,
}

pub(super) fn run(common: &Common, task: &TaskDirectory, request: &KeepRequest) -> Result<Exit, CliError> {
    let lock = task.lock(TaskUse::Changes)?;
    let description = task.description()?;
    let common = Common { directory: Some(description.workspace.clone()), ..common.clone() };
    let place = AppContext::find(&common)?;
    let policy = place.policy(common.policy.as_deref(), None)?;
    let mut changes = TaskChanges::read(task, &description)?;
    select(&mut changes, &request.paths)?;
    if request.pick {
        pick::choose(&mut changes, &description.workspace)?;
    }
    let conflicts = changes.collected.conflicts.clone();
    let failed = |why: String| CliError::failed(Problem::new("cannot apply the changes").because(why));
    let patch = changes.patch(policy.stamp(place.mode)).map_err(failed)?;
    let exit = match patch {
        Some(patch) => {
            if request.form != KeepForm::Check {
                // Record this before the files change, so that a crash does not turn them into
                // conflicts.
                changes.note_applied(task)?;
            }
            let form = match request.form {
                KeepForm::Check => Form::Check,
                KeepForm::Ask => Form::Ask,
                KeepForm::Yes => Form::Yes,
            };
            let files = format_count(patch.header().files.len() as u64, "file", "files");
            let application = Application {
                prompt: format!("Apply the changes of task {} to {files}", task.short_id()),
                subject: "the task's changes",
                conflict_hint: format!("run `aye task diff {}` to see the conflicts", task.short_id()),
                has_terminal: true,
            };
            apply_patch(&common, place, Arc::new(patch), form, &application)?
        }
        None if conflicts.is_empty() => {
            print_text("no changes to apply\n");
            Exit::Completed
        }
        None => Exit::Failed,
    };
    drop(lock);
    report_conflicts(task, &changes, &conflicts, exit)
}

/// Reports the files that were not applied.
fn report_conflicts(task: &TaskDirectory, changes: &TaskChanges, conflicts: &[String], exit: Exit) -> Result<Exit, CliError> {
    if conflicts.is_empty() {
        return Ok(exit);
    }
    for path in conflicts {
        let problem = Problem::new(format!("`{path}` was also changed in the workspace; it was not applied"));
        warn(problem.hint(format!("the task's version is `{}`", changes.version(path).display())));
    }
    let count = format_count(conflicts.len() as u64, "file was", "files were");
    let problem = Problem::new(format!("{count} not applied because of conflicts"));
    let id = task.short_id();
    Err(CliError::failed(
        problem
            .hint("merge the task's version into the file by hand")
            .hint(format!("run `aye task resume {id} PROMPT` to let the task continue")),
    ))
}
