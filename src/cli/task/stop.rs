//! `aye task stop`: asks the process that runs a task to save its state and exit.

use crate::host::console::print_text;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::tasks::{TaskDirectory, TaskUse};
use crate::protocol::Problem;
use std::time::{Duration, Instant};

/// Maximum time to wait until the process has saved its state and exited.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Interval at which the process is polled.
const INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn run(task: &TaskDirectory) -> Result<Exit, CliError> {
    let id = task.short_id();
    match task.holder() {
        Some(holder) if holder.purpose == TaskUse::Run => {
            task.update_notes(|notes| notes.is_stopped = true)?;
            end_run(task)?;
            print_text(&format!("stopped task {id}\n"));
            Ok(Exit::Completed)
        }
        Some(holder) => {
            let problem = Problem::new(format!("task `{id}` is open in process {}", holder.instance.pid));
            Err(CliError::usage(problem.hint("quit aye there")))
        }
        None => Err(CliError::usage(format!("task `{id}` is not running")).hint("run `aye tasks` to see its state")),
    }
}

/// Asks the process that runs a task to exit, and waits until it has done so. The task can be resumed later.
///
/// # Errors
/// Returns an error if the process does not exit in time. The process is not killed in that case.
pub(super) fn end_run(task: &TaskDirectory) -> Result<(), CliError> {
    let Some(holder) = task.holder() else { return Ok(()) };
    let pid = holder.instance.pid;
    let asked = holder.instance.terminate();
    let asked =
        asked.map_err(|error| CliError::failed(Problem::new(format!("cannot ask process {pid} to exit")).because(error)))?;
    let until = Instant::now() + TIMEOUT;
    while asked && holder.instance.is_alive() && task.holder().as_ref() == Some(&holder) {
        if Instant::now() >= until {
            let seconds = TIMEOUT.as_secs();
            let problem = Problem::new(format!("process {pid} did not exit within {seconds} s"));
            return Err(CliError::failed(problem.because("aye did not kill it, because it may be busy").hint("try again")));
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}
