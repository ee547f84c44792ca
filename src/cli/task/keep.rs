//! `aye task keep`: applies a task's changes to the workspace, judging them like the changes in a patch file.

use super::diff::{exclude, select};
use super::pick;
use crate::cli::apply::{Application, Form, apply_patch};
use crate::cli::screen::is_plain;
use crate::host::console::{print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::nesting::Nesting;
use crate::host::options::Common;
use crate::host::tasks::{TaskChanges, TaskDirectory, TaskUse};
use crate::protocol::{Problem, format_count};
use crate::tools::{OmittedPath, PatchReview};
use std::io::IsTerminal;
use std::sync::Arc;

/// Maximum number of notes about changes that are not applied.
const MAX_NOTES: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeepRequest {
    pub id: String,
    /// Files to apply. If empty, all files are applied.
    pub paths: Vec<String>,
    /// Files that must not be applied.
    pub except: Vec<String>,
    pub form: KeepForm,
    /// Whether the user chooses which hunks to apply.
    pub pick: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepForm {
    /// Only shows the planned changes.
    Check,
    /// Prompts for each change that needs approval.
    Ask,
    /// Approves every change that needs approval.
    Yes,
}

pub(super) fn run(common: &Common, task: &TaskDirectory, request: &KeepRequest) -> Result<Exit, CliError> {
    let lock = task.lock(TaskUse::Changes)?;
    let description = task.description()?;
    let common = Common { directory: Some(description.workspace.clone()), ..common.clone() };
    let app = AppContext::find(&common)?;
    let policy = app.policy(common.policy.as_deref(), None)?;
    let mut changes = TaskChanges::read(task, &description)?;
    select(&mut changes, &request.paths)?;
    exclude(&mut changes, &request.except)?;
    // A command that aye runs must not answer approvals on a screen.
    let has_person = std::io::stdin().is_terminal() && Nesting::detect() == Nesting::Outermost;
    let on_screen = request.form != KeepForm::Check && has_person && !is_plain(&common, &app);
    if request.pick && !on_screen {
        pick::choose(&mut changes, &description.workspace)?;
    }
    let conflicts = changes.collected.conflicts.clone();
    let failed = |why: String| CliError::failed(Problem::new("cannot apply the changes").because(why));
    let patch = changes.patch(policy.stamp(app.mode)).map_err(failed)?;
    let exit = match patch {
        Some(patch) => {
            let patch = patch.for_review(review(task, &changes, request.pick && on_screen));
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
                on_screen,
            };
            apply_patch(&common, app, Arc::new(patch), form, &application)?
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

/// Returns the review of the changes. The content of applied files is recorded before it is written, so those files do
/// not become conflicts after a crash.
fn review(task: &TaskDirectory, changes: &TaskChanges, is_required: bool) -> PatchReview {
    let collected = &changes.collected;
    let conflict = |path: &String| format!("conflict: `{path}` was also changed in the workspace; it is not applied");
    let left_out = |left: &OmittedPath| format!("not included: `{}` ({})", left.path, left.why);
    let check = task.notes().check.map(|check| format!("check {}: {}", check.describe(), check.command));
    let more = |count: usize, what: &str| count.checked_sub(MAX_NOTES + 1).map(|over| format!("{what}: … and {} more", over + 1));
    let notes = check.into_iter().chain(collected.conflicts.iter().take(MAX_NOTES).map(conflict));
    let notes = notes.chain(more(collected.conflicts.len(), "conflict"));
    let notes = notes.chain(collected.left_out.iter().take(MAX_NOTES).map(left_out));
    let notes = notes.chain(more(collected.left_out.len(), "not included")).collect();
    let task = task.clone();
    PatchReview::new((is_required, notes), move |results| {
        TaskChanges::note_applied(&task, results).map_err(|error| error.to_string())
    })
}

/// Reports files that were not applied because of conflicts.
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
