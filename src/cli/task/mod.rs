//! `aye task` and `aye tasks`: manage tasks, each of which runs in its own copy of the workspace.

pub(crate) mod args;
mod diff;
mod drive;
mod keep;
mod list;
mod pick;
mod remove;
mod run;
mod start;
mod stop;

use crate::cli::interactive;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::{Common, SessionChoice};
use crate::host::tasks::{TaskDirectory, TaskUse, copy};
use crate::protocol::Problem;
use args::TaskAction;
use drive::OutputTarget;
use run::TaskRunRequest;
use std::io::IsTerminal;

pub(crate) fn run(common: &Common, action: TaskAction) -> Result<Exit, CliError> {
    let app = AppContext::find(common)?;
    let data = app.directories.shared.clone();
    let find = |id: &str| TaskDirectory::find(&data, id);
    match action {
        TaskAction::List { all, json } => list::run(&app, all, json),
        TaskAction::Start(request) => start::run(common, &app, request),
        TaskAction::Open { id } => open(common, &find(&id)?),
        TaskAction::Resume { id, prompt, detach, is_attached } => {
            let task = find(&id)?;
            task.update_notes(|notes| (notes.is_stopped, notes.needs_user) = (false, false))?;
            if detach {
                return start::detach(&task, prompt.as_deref());
            }
            run::run(common, &task, TaskRunRequest { prompt, target: OutputTarget::Terminal, is_attached })
        }
        TaskAction::Stop { id } => stop::run(&find(&id)?),
        TaskAction::Diff(request) => diff::run(&find(&request.id)?, &request),
        TaskAction::Keep(request) => keep::run(common, &find(&request.id)?, &request),
        TaskAction::Drop { id, force } => remove::run(&find(&id)?, force),
        TaskAction::Run { id, prompt } => {
            run::run(common, &find(&id)?, TaskRunRequest { prompt, target: OutputTarget::Log, is_attached: false })
        }
    }
}

/// Opens a task's session on the screen, inside the task's copy of the workspace.
fn open(common: &Common, task: &TaskDirectory) -> Result<Exit, CliError> {
    if !(std::io::stdin().is_terminal() || common.plain) {
        let id = task.short_id();
        let problem = Problem::new("stdin is not a terminal");
        return Err(CliError::usage(problem.hint(format!("run `aye task resume {id}` to continue the task without a screen"))));
    }
    if task.holder().is_some_and(|holder| holder.purpose == TaskUse::Run) {
        stop::end_run(task)?;
    }
    let entered = copy::enter(task, common, TaskUse::Open)?;
    let is_new = crate::host::tasks::changes::sessions(task)?.is_empty();
    let (prompt, session) =
        if is_new { (Some(entered.description.prompt.clone()), SessionChoice::New) } else { (None, SessionChoice::Latest) };
    task.update_notes(|notes| (notes.is_stopped, notes.needs_user) = (false, false))?;
    let exit = interactive::run(&entered.common, interactive::ScreenRequest::new(prompt, session))?;
    drop(entered.lock);
    Ok(exit)
}
