//! Notes in a proposal on changed files that other programs run as code.

use super::paths::display_path_one_line;
use super::settings::ToolSettings;
use crate::policy::{self, CodeReader, CodeReaders};
use crate::protocol::{Action, Proposal, RunsCode, RunsWhen};
use std::path::{Path, PathBuf};

/// Maximum number of notes in one proposal. `runs_code` lists all marked files.
const MAX_NOTES: usize = 5;
/// Maximum number of files to mark in one proposal.
const MAX_MARKED: usize = 1_000;

/// Returns the program that would run the file at this real path as code, if there is one.
pub(super) fn reader(path: &Path, settings: &ToolSettings) -> Option<CodeReader> {
    policy::runs_code(path, &roots(settings))
}

/// Returns a lookup, suitable for many real paths, of the programs that run files as code.
pub(super) fn readers(settings: &ToolSettings) -> CodeReaders {
    CodeReaders::new(roots(settings))
}

fn roots(settings: &ToolSettings) -> Vec<PathBuf> {
    settings.command.sandbox.paths.roots.iter().chain([&settings.workspace]).cloned().collect()
}

/// Returns whether a program runs the file as soon as its folder is opened.
pub(super) fn is_opened(path: &Path, settings: &ToolSettings) -> bool {
    reader(path, settings).is_some_and(|found| found.when == RunsWhen::Opened)
}

/// Marks the files that these actions change in the proposal.
pub(super) fn mark_by_actions(proposal: Proposal, actions: &[Action], settings: &ToolSettings) -> Proposal {
    let paths = actions.iter().filter_map(|action| match action {
        Action::Write { target } | Action::Delete { target } => {
            // A symlink with the name of such a file is treated like the file.
            let given = Path::new(&target.given);
            let by_name = reader(&target.real, settings).is_none() && policy::runs_code(given, &[]).is_some();
            Some(if by_name && given.is_relative() { settings.workspace.join(given) } else { target.real.clone() })
        }
        _ => None,
    });
    let paths: Vec<PathBuf> = paths.collect();
    mark_files(proposal, paths.iter().map(PathBuf::as_path), settings)
}

/// Marks the files at these real paths in the proposal.
pub(super) fn mark_files<'a>(mut proposal: Proposal, paths: impl Iterator<Item = &'a Path>, settings: &ToolSettings) -> Proposal {
    let mut notes = Vec::new();
    for path in paths {
        let Some(found) = reader(path, settings) else { continue };
        let name = display_path_one_line(path, settings);
        if proposal.runs_code.len() >= MAX_MARKED || proposal.runs_code.iter().any(|marked| marked.path == name) {
            continue;
        }
        notes.push(found.reason(&name));
        proposal.runs_code.push(RunsCode { path: name, when: found.when, readers: found.readers.to_owned() });
    }
    let more = notes.len().saturating_sub(MAX_NOTES);
    notes.truncate(MAX_NOTES);
    proposal.notes.extend(notes);
    if more > 0 {
        proposal.notes.push(format!("{more} more of these files can run code"));
    }
    proposal
}
