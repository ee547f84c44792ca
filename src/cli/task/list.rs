//! `aye tasks`: lists a project's tasks, with their states, costs and changes.

use crate::host::console::{print_json, print_text, warn};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::tasks::{TaskDirectory, TaskSummary};
use crate::transfer::format::{dollars, format_count, one_line};
use std::fmt::Write as _;

/// Maximum width of a prompt in the list, in terminal cells.
const PROMPT_CELLS: usize = 60;
/// Number of digits of a task ID that are shown.
const ID_DIGITS: usize = 8;

pub(super) fn run(app: &AppContext, all: bool, json: bool) -> Result<Exit, CliError> {
    let mut tasks = Vec::new();
    for directory in TaskDirectory::all(&app.directories.shared) {
        let read = directory.description().and_then(|description| {
            let is_here = all || description.workspace == app.workspace;
            is_here.then(|| TaskSummary::read(&directory, &description)).transpose()
        });
        match read {
            Ok(summary) => tasks.extend(summary),
            // The other tasks are listed even if one is damaged.
            Err(error) => warn(error.into_problem()),
        }
    }
    tasks.sort_by_key(|task| std::cmp::Reverse(task.created));
    if json {
        print_json(&tasks);
        return Ok(Exit::Completed);
    }
    let mut text = String::new();
    let state_width = tasks.iter().map(|task| state(task).len()).max().unwrap_or_default();
    for task in &tasks {
        text.push_str(&line(task, state_width));
        if all {
            let _ = writeln!(text, "          {}", one_line(&task.workspace.to_string_lossy()));
        }
    }
    if tasks.is_empty() {
        text.push_str("no tasks yet\n");
    }
    print_text(&text);
    Ok(Exit::Completed)
}

fn state(task: &TaskSummary) -> String {
    task.state.describe(task.denied)
}

/// Returns the row for a task. `state_width`: width in cells of the longest state.
fn line(task: &TaskSummary, state_width: usize) -> String {
    let id: String = task.id.chars().take(ID_DIGITS).collect();
    let time = task.created.strftime("%Y-%m-%d %H:%M");
    let cost = task.cost_usd.map_or_else(|| "-".to_owned(), |cost| dollars(cost, task.estimated));
    let files = task.changed_files.map_or_else(|| "?".to_owned(), |count| format_count(count as u64, "file"));
    let prompt = one_line(task.prompt.trim().lines().next().unwrap_or_default());
    let prompt = crate::text::truncate(&prompt, PROMPT_CELLS);
    let mut line = format!("{id}  {:state_width$}  {time}  {cost:>8}  {files:>8}  {prompt}\n", state(task));
    let mut add = |row: String| {
        let _ = writeln!(line, "          {}", one_line(&row));
    };
    if let Some(waits_for) = task.waits_for.as_ref().filter(|_| !task.state.is_active()) {
        add(format!("waiting for your approval: {waits_for}"));
    }
    if task.conflicts > 0 {
        add(format!("{} also changed in the workspace", format_count(task.conflicts as u64, "file")));
    }
    if let Some(check) = &task.check {
        add(format!("check {}: {}", check.describe(), check.command));
    }
    if let Some(branch) = &task.branch {
        add(format!("branch {branch}"));
    }
    line
}
