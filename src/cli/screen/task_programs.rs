//! Commands for tasks that take over the terminal while they run.

use crate::cli::screen::current_workspace::CurrentWorkspace;
use crate::tui::{RunTask, TaskProgram};
use std::io::{BufRead, Write};
use std::process::Command;
use std::sync::Arc;

/// Returns a function that runs `aye task` in the workspace.
pub(crate) fn task_runner(here: &CurrentWorkspace) -> RunTask {
    let here = here.clone();
    RunTask(Arc::new(move |id, program| {
        let program_path = std::env::current_exe().map_err(|error| format!("cannot find the aye executable: {error}"))?;
        let mut command = Command::new(program_path);
        command.current_dir(here.workspace()).arg("task").args(match program {
            TaskProgram::Open => vec!["open", id],
            TaskProgram::Diff => vec!["diff", id],
            TaskProgram::Keep => vec!["keep", "--pick", id],
        });
        let status = command.status().map_err(|error| format!("cannot run `aye task`: {error}"))?;
        if program != TaskProgram::Open || !status.success() {
            // Otherwise, the screen would cover the output immediately.
            print_and_wait();
        }
        Ok(())
    }))
}

fn print_and_wait() {
    let mut out = std::io::stdout();
    let _ = out.write_all(b"\nPress enter to return to aye. ");
    let _ = out.flush();
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}
