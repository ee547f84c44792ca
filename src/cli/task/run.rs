//! Runs a task in this process. The process enters the task's copy of the workspace and runs the session without a
//! screen.

use super::drive::{DriveRequest, OutputTarget, TaskEnding, drive};
use crate::agent::ResumePolicy;
use crate::host::console::{print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::{Common, SessionChoice};
use crate::host::session_builder::front_end::FrontEnd;
use crate::host::session_builder::{PreparedSession, SessionBuilder};
use crate::host::startup::{self, start_log};
use crate::host::tasks::changes::sessions;
use crate::host::tasks::copy::{self, EnteredCopy};
use crate::host::tasks::status::JournalFacts;
use crate::host::tasks::{CopyKind, TaskDirectory, TaskUse, worktree};
use crate::protocol::{Command, ListedTaskState, Problem, SessionCommand};
use crate::store::Store;
use crate::sys::signals::leave_terminal;
use tokio::runtime::Runtime;

/// Line that the background process prints when its session has started.
pub(super) const READY: &str = "ready";

/// Request to run a task.
pub(super) struct TaskRunRequest {
    /// Message that continues the task. Ignored if the task has no session yet.
    pub prompt: Option<String>,
    pub target: OutputTarget,
    /// Whether the task stops when standard input is closed.
    pub is_attached: bool,
}

/// Runs a task until it ends, needs the user, or is stopped.
pub(super) fn run(common: &Common, task: &TaskDirectory, request: TaskRunRequest) -> Result<Exit, CliError> {
    if request.target == OutputTarget::Log || request.is_attached {
        // Terminal signals are meant for the process that started this one.
        leave_terminal();
    }
    // The copy must be entered before a thread starts. Opening the store starts a thread, so only its existence is
    // checked here.
    let has_store = task.data().join("aye.db").exists();
    let entered = match copy::enter(task, common, TaskUse::Run) {
        Ok(entered) => entered,
        Err(error) => return Err(discard_if_new(task, !has_store, error)),
    };
    let is_new = sessions(task)?.is_empty();
    let app = AppContext::find(&entered.common)?;
    let _log = start_log(&app, common.verbosity);
    let runtime = startup::runtime()?;
    let started = prepare(&runtime, app, &entered, request.prompt.is_some(), is_new);
    let (prepared, is_over) = match started {
        Ok(started) => started,
        Err(error) => {
            drop((runtime, entered.lock));
            return Err(discard_if_new(task, is_new, error));
        }
    };
    if request.target == OutputTarget::Log {
        print_text(&format!("{READY}\n"));
    }
    let first = first_command(request.prompt, &entered.description.prompt, is_new, is_over);
    let drive_request = DriveRequest {
        first,
        check: entered.description.check.clone(),
        target: request.target,
        is_layer: entered.description.copy == CopyKind::Layer,
        is_attached: request.is_attached,
    };
    let ending = runtime.block_on(drive(prepared, drive_request));
    finish(task, &entered, ending)
}

/// Returns the command that starts or continues the task, or `None` if its session continues without one. A task that
/// has not started yet begins with its own prompt, followed by the message.
fn first_command(message: Option<String>, own_prompt: &str, is_new: bool, is_over: bool) -> Option<SessionCommand> {
    let text = match (message, is_new, is_over) {
        (Some(message), true, _) => format!("{own_prompt}\n\n{message}"),
        (Some(message), false, _) => message,
        (None, true, _) => own_prompt.to_owned(),
        (None, false, true) => return Some(Command::Continue.into()),
        (None, false, false) => return None,
    };
    Some(Command::Prompt { text }.into())
}

/// Opens the task's session. Also returns whether the last prompt in the session was completed or stopped.
fn prepare(
    runtime: &Runtime,
    app: AppContext,
    entered: &EnteredCopy,
    has_prompt: bool,
    is_new: bool,
) -> Result<(PreparedSession, bool), CliError> {
    let store = Store::open(&app.directories.data)?;
    let choice = if is_new { SessionChoice::New } else { SessionChoice::Latest };
    let unfinished = if has_prompt { ResumePolicy::Discard } else { ResumePolicy::Continue };
    let builder = SessionBuilder::find(FrontEnd::task(), entered.common.clone(), app, store, &choice)?;
    let builder = runtime.block_on(builder.with_model())?.with_unfinished(unfinished);
    let claimed = builder.claim()?;
    let is_over = claimed.session().state.task().is_some_and(|task| task.stage.is_over());
    if is_over && !has_prompt && claimed.session().state.is_done() {
        let problem = Problem::new("the task has already ended");
        return Err(CliError::usage(problem.hint("pass a message to continue with: `aye task resume ID PROMPT`")));
    }
    Ok((runtime.block_on(claimed.prepare())?, is_over))
}

/// Deletes a task that was never started and has no data.
fn discard_if_new(task: &TaskDirectory, is_new: bool, error: CliError) -> CliError {
    if !is_new || task.holder().is_some_and(|holder| holder.instance.pid != std::process::id()) {
        return error;
    }
    let removed = task.description().and_then(|description| worktree::remove_of(&description)).and_then(|_| task.remove());
    if let Err(problem) = removed {
        warn(problem.into_problem());
    }
    error
}

/// Records how the run ended, and prints what the user can do next.
fn finish(task: &TaskDirectory, entered: &EnteredCopy, ending: TaskEnding) -> Result<Exit, CliError> {
    if let Some(check) = ending.check {
        task.update_notes(|notes| notes.check = Some(check))?;
    }
    let id = task.short_id();
    if ending.needs_user {
        task.update_notes(|notes| notes.needs_user = true)?;
        let what = JournalFacts::read(task)?.waits_for;
        let what = what.map_or_else(|| "a decision".to_owned(), |summary| format!("your approval: {summary}"));
        warn(Problem::new(format!("task {id} is waiting for {what}")).hint(format!("run `aye task open {id}` to decide")));
        return Ok(Exit::Denied);
    }
    match ending.exit {
        Exit::Completed | Exit::Denied => {
            let check = task.notes().check.filter(|_| entered.description.check.is_some());
            if let Some(check) = check {
                warn(format!("check {}: {}", check.describe(), check.command));
            }
            let state = ListedTaskState::Done.describe(JournalFacts::read(task)?.denied);
            let problem = Problem::new(format!("task {id} is {state}"));
            warn(problem.hint(format!("run `aye task diff {id}` to see its changes")));
        }
        Exit::Interrupted | Exit::Terminated => {
            if ending.exit == Exit::Interrupted {
                task.update_notes(|notes| notes.is_stopped = true)?;
            }
            warn(Problem::new(format!("task {id} was stopped")).hint(format!("run `aye task resume {id}` to continue it")));
        }
        _ => {}
    }
    Ok(ending.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_begins_with_its_own_prompt_and_a_message_is_never_lost() {
        let prompt = |text: &str| Some(Command::Prompt { text: text.to_owned() }.into());
        let message = || Some("also test it".to_owned());
        for (message, is_new, is_over, first) in [
            (None, true, false, prompt("fix it")),
            (message(), true, false, prompt("fix it\n\nalso test it")),
            (message(), false, false, prompt("also test it")),
            (message(), false, true, prompt("also test it")),
            (None, false, true, Some(Command::Continue.into())),
            (None, false, false, None),
        ] {
            assert_eq!(first_command(message, "fix it", is_new, is_over), first);
        }
    }
}
