//! Tasks that run in copies of the workspace. Lists them for the screen, and manages task processes that the screen
//! starts.

use super::QueryHandler;
use super::sessions::age;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::tasks::{TaskDirectory, TaskSummary, TaskUse};
use crate::protocol::{HostRequest, HostResponse, ListedTask, Problem};
use crate::sys::watch::Watch;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Exit codes that are not reported as errors, because the list already shows the corresponding state: done, needs the
/// user, or stopped.
const SHOWN_ENDS: [i32; 4] = [0, 3, 130, 143];
/// Maximum number of bytes quoted in an error from the output of a failed task.
const OUTPUT_BYTES: usize = 2 << 10;

/// Returns whether a request concerns tasks.
pub(super) fn is_about_tasks(what: &HostRequest) -> bool {
    matches!(
        what,
        HostRequest::Tasks | HostRequest::StartTask { .. } | HostRequest::ResumeTask { .. } | HostRequest::StopTask { .. }
    )
}

/// Returns the tasks of the workspace, most recent first.
fn list(app: &AppContext) -> Vec<ListedTask> {
    let mut all: Vec<TaskSummary> = TaskDirectory::all(&app.directories.shared)
        .iter()
        .filter_map(|task| {
            let description = task.description().ok().filter(|description| description.workspace == app.workspace)?;
            TaskSummary::read(task, &description).inspect_err(|error| tracing::warn!(%error, "cannot read a task")).ok()
        })
        .collect();
    all.sort_by_key(|task| std::cmp::Reverse(task.created));
    let now = jiff::Timestamp::now().as_second();
    all.into_iter().map(|task| to_listed_task(task, now)).collect()
}

fn to_listed_task(task: TaskSummary, now: i64) -> ListedTask {
    ListedTask {
        state: task.state,
        age: age(now.saturating_sub(task.created.as_second())),
        check: task.check.as_ref().map(|check| format!("{}: {}", check.describe(), check.command)),
        id: task.id,
        prompt: task.prompt,
        cost_usd: task.cost_usd,
        estimated: task.estimated,
        changed_files: task.changed_files.map(|count| count as u64),
        conflicts: task.conflicts as u64,
        denied: task.denied,
        waits_for: task.waits_for,
        branch: task.branch,
    }
}

impl QueryHandler {
    /// Handles a request that concerns tasks. Ignores any other request.
    pub(super) fn answer_tasks(&self, what: &HostRequest) {
        match what {
            HostRequest::Tasks => self.emit_tasks(),
            HostRequest::StartTask { prompt } => self.run_task(&["task", "start", "--until-stdin-closes", "--", prompt]),
            HostRequest::ResumeTask { id } => self.run_task(&["task", "resume", "--until-stdin-closes", id]),
            HostRequest::StopTask { id } => {
                if let Err(error) = self.stop_task(id) {
                    self.emit(HostResponse::Failed { problem: error.into_problem() });
                }
            }
            _ => {}
        }
    }

    /// Sends the current list of the workspace's tasks.
    fn emit_tasks(&self) {
        self.emit(HostResponse::Tasks { tasks: list(&self.inner.app) });
    }

    /// Sends the list of tasks whenever a process starts or stops using one of them, until the screen closes.
    pub(super) fn follow_tasks(&self) {
        let desk = self.clone();
        tokio::spawn(async move {
            loop {
                let tasks = TaskDirectory::all(&desk.inner.app.directories.shared);
                let files: Vec<PathBuf> = tasks.iter().flat_map(TaskDirectory::watched_files).collect();
                let parent = TaskDirectory::parent(&desk.inner.app.directories.shared);
                let mut watch = match Watch::with_directories(files, vec![parent]) {
                    Ok(watch) => watch,
                    Err(error) => return tracing::warn!(%error, "cannot watch the tasks"),
                };
                let all = desk.clone();
                if tokio::task::spawn_blocking(move || all.emit_tasks()).await.is_err() {
                    return;
                }
                let changed = tokio::select! {
                    changed = watch.wait_for_change() => changed,
                    () = desk.events.closed() => return,
                };
                if let Err(error) = changed {
                    return tracing::warn!(%error, "stopped watching the tasks");
                }
            }
        });
    }

    /// Starts a process that runs a task. The process is stopped when this one exits.
    fn run_task(&self, arguments: &[&str]) {
        let app = &self.inner.app;
        let failed = |problem: Problem| self.emit(HostResponse::Failed { problem });
        if app.directories.data != app.directories.shared {
            return failed(Problem::new("a task cannot start other tasks").hint("start it outside this task"));
        }
        match spawn(app, arguments) {
            Ok(child) => {
                let desk = self.clone();
                std::thread::spawn(move || desk.wait_for_task(child));
            }
            Err(error) => failed(Problem::new("cannot start a task").because(error)),
        }
    }

    /// Waits until the process that runs a task exits, and reports an error if it failed.
    fn wait_for_task(&self, mut child: Child) {
        // The task ends with this process, because the kernel closes the pipe.
        let _input = child.stdin.take();
        let output = child.wait_with_output();
        let failure = match &output {
            Ok(output) if output.status.code().is_some_and(|code| SHOWN_ENDS.contains(&code)) => None,
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                let start = text.len().saturating_sub(OUTPUT_BYTES);
                let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
                Some(Problem::new("a task failed").because(text[start..].trim_start_matches("error: ")))
            }
            Err(error) => Some(Problem::new("a task failed").because(error)),
        };
        if let Some(problem) = failure {
            self.emit(HostResponse::Failed { problem });
        }
        self.emit_tasks();
    }

    /// Asks the process that runs a task to save its state and exit.
    fn stop_task(&self, id: &str) -> Result<(), CliError> {
        let task = TaskDirectory::find(&self.inner.app.directories.shared, id)?;
        let Some(holder) = task.holder().filter(|holder| holder.purpose == TaskUse::Run) else { return Ok(()) };
        task.update_notes(|notes| notes.is_stopped = true)?;
        let failed = |error| CliError::failed(Problem::new("cannot stop the task").because(error));
        holder.instance.terminate().map(drop).map_err(failed)
    }
}

fn spawn(app: &AppContext, arguments: &[&str]) -> std::io::Result<Child> {
    let mut process = Command::new(std::env::current_exe()?);
    process.arg("-C").arg(&app.workspace).args(app.arguments()).args(arguments);
    process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
}
