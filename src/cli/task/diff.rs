//! `aye task diff`: shows a task's changes, their conflicts, and the result of the task's check.

use crate::host::console::{print_json, print_text};
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::tasks::{TaskChanges, TaskDirectory, TaskSummary};
use crate::protocol::Problem;
use crate::text::clean;
use crate::tools::{CollectedChanges, PolicyStamp};
use serde::Serialize;
use std::fmt::Write as _;

/// Maximum number of changes listed that cannot be applied.
const MAX_LEFT_OUT: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffRequest {
    pub id: String,
    /// Files to show. If empty, all files are shown.
    pub paths: Vec<String>,
    pub json: bool,
}

/// A task's changes in the JSON output of `aye task diff`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiffOutput {
    #[serde(flatten)]
    task: TaskSummary,
    diff: String,
    /// Files that were also changed in the workspace, each with the path at which the task's version is stored.
    conflicts: Vec<ConflictRow>,
    /// Changes that cannot be applied.
    left_out: Vec<OmittedRow>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConflictRow {
    path: String,
    version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OmittedRow {
    path: String,
    why: String,
}

pub(super) fn run(task: &TaskDirectory, request: &DiffRequest) -> Result<Exit, CliError> {
    let description = task.description()?;
    let mut changes = TaskChanges::read(task, &description)?;
    select(&mut changes, &request.paths)?;
    let stamp = PolicyStamp { hash: String::new(), name: String::new(), mode: String::new() };
    let patch = changes.patch(stamp).map_err(|why| CliError::failed(Problem::new("cannot show the changes").because(why)))?;
    let diff = patch.map(|patch| patch.diffs().to_string()).unwrap_or_default();
    let version = |path: &str| changes.version(path).display().to_string();
    let collected = &changes.collected;
    if request.json {
        let conflict = |path: &String| ConflictRow { path: path.clone(), version: version(path) };
        let conflicts = collected.conflicts.iter().map(conflict).collect();
        let row = |path: &String, why: &String| OmittedRow { path: path.clone(), why: why.clone() };
        let left_out = collected.left_out.iter().map(|left| row(&left.path, &left.why)).collect();
        print_json(&DiffOutput { task: TaskSummary::read(task, &description)?, diff, conflicts, left_out });
        return Ok(Exit::Completed);
    }
    let mut text = diff;
    for path in &collected.conflicts {
        let _ = writeln!(text, "conflict: {path} was also changed in the workspace");
        let _ = writeln!(text, "  the task's version: {}", version(path));
    }
    for left in collected.left_out.iter().take(MAX_LEFT_OUT) {
        let _ = writeln!(text, "not included: {} ({})", left.path, left.why);
    }
    if let Some(more) = collected.left_out.len().checked_sub(MAX_LEFT_OUT).filter(|more| *more > 0) {
        let _ = writeln!(text, "not included: {more} more");
    }
    if let Some(check) = task.notes().check {
        let _ = writeln!(text, "check {}: {}", check.describe(), check.command);
    }
    if text.is_empty() {
        text.push_str("no changes\n");
    }
    print_text(&clean(&text));
    Ok(Exit::Completed)
}

/// Restricts the changes to these files and directories. If `paths` is empty, all changes are retained.
///
/// # Errors
/// Returns an error if a path is not among the changes.
pub(super) fn select(changes: &mut TaskChanges, paths: &[String]) -> Result<(), CliError> {
    if paths.is_empty() {
        return Ok(());
    }
    let is_chosen = chooser(&changes.collected, paths)?;
    changes.collected.retain(|known| is_chosen(known));
    changes.collected.conflicts.retain(|path| is_chosen(path));
    changes.collected.left_out.clear();
    Ok(())
}

/// Removes these files and directories from the changes.
///
/// # Errors
/// Returns an error if a path is not among the changes.
pub(super) fn exclude(changes: &mut TaskChanges, paths: &[String]) -> Result<(), CliError> {
    let is_excluded = chooser(&changes.collected, paths)?;
    changes.collected.retain(|known| !is_excluded(known));
    changes.collected.conflicts.retain(|path| !is_excluded(path));
    Ok(())
}

/// Returns a function that determines whether a changed file is at or below one of these paths.
///
/// # Errors
/// Returns an error if a path is not among the changes.
fn chooser(collected: &CollectedChanges, paths: &[String]) -> Result<impl Fn(&str) -> bool + use<>, CliError> {
    let clean = |path: &String| path.trim_start_matches("./").trim_end_matches('/').to_owned();
    let paths: Vec<String> = paths.iter().map(clean).collect();
    let is_at = |known: &str, path: &str| known.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    for path in &paths {
        let mut all = collected.files.iter().map(|entry| &entry.path).chain(&collected.conflicts);
        if !all.any(|known| is_at(known, path)) {
            let left_out = collected.left_out.iter().find(|left| left.path == *path);
            let why = left_out.map_or("the task did not change this file", |left| left.why.as_str());
            return Err(CliError::usage(Problem::new(format!("`{path}` is not among the task's changes")).because(why)));
        }
    }
    Ok(move |known: &str| paths.iter().any(|path| is_at(known, path)))
}
