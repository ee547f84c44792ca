//! Builds what is shown when a patch is to be approved, and the result of applying it.

use super::tree::{FinalPathState, PatchPath, PathBefore};
use crate::protocol::{FileDiff, Proposal};
use crate::tools::diff::cuts::HunkLines;
use crate::tools::diff::{LineDiff, compare, prepare_text};
use crate::tools::document::content::Document;
use crate::tools::paths::{display_path_one_line, join_names};
use crate::tools::settings::ToolSettings;
use crate::tools::write::file_change::{HAS_NUL, preservation_notes, removal};
use std::fmt::Write as _;

pub(super) struct PatchProposal {
    pub proposal: Proposal,
    /// Result that the model receives.
    pub done: String,
    /// For each part that is shown, the index of its file and its hunks.
    pub cuts: Vec<(usize, Vec<HunkLines>)>,
}

/// The change to one file: a summary line and the diff.
struct Part {
    verb: &'static str,
    past: &'static str,
    name: String,
    diff: FileDiff,
    added: usize,
    removed: usize,
    notes: Vec<String>,
    file: usize,
    cuts: Vec<HunkLines>,
}

impl Part {
    fn line(&self, verb: &str) -> String {
        let Self { name, added, removed, .. } = self;
        let counts = match (added, removed) {
            (0, 0) => String::new(),
            (0, removed) => format!(" −{removed}"),
            (added, removed) => format!(" +{added} −{removed}"),
        };
        format!("{verb} {name}{counts}")
    }
}

pub(super) fn build_proposal(files: &[PatchPath], settings: &ToolSettings) -> PatchProposal {
    let parts: Vec<Part> = (0..files.len()).filter_map(|at| file_part(at, files, settings)).collect();
    let (added, removed) =
        (parts.iter().map(|part| part.added).sum::<usize>(), parts.iter().map(|part| part.removed).sum::<usize>());
    let summary = match parts.as_slice() {
        [] => "Patch without changes".to_owned(),
        [part] => part.line(part.verb),
        parts => {
            format!("Patch {} files +{added} −{removed}: {}", parts.len(), join_names(parts.iter().map(|part| part.name.clone())))
        }
    };
    let note = |part: &Part, note: &String| if parts.len() == 1 { note.clone() } else { format!("{}: {note}", part.name) };
    let notes: Vec<String> =
        parts.iter().flat_map(|part| part.notes.iter().map(|text| note(part, text)).collect::<Vec<_>>()).collect();
    let mut done = String::new();
    for part in &parts {
        let _ = writeln!(done, "{}", part.line(part.past));
    }
    for note in &notes {
        let _ = writeln!(done, "[{note}]");
    }
    if parts.is_empty() {
        done.push_str("the patch changes nothing: the files already have this content");
    }
    let touched = files.iter().filter(|file| !(file.is_new() && matches!(file.now, FinalPathState::Absent)));
    let bytes = files.iter().map(|file| match &file.now {
        FinalPathState::Absent => 0,
        FinalPathState::Text(document) => document.form.encode(&document.text).map_or(0, |bytes| bytes.len() as u64),
        FinalPathState::Bytes(bytes) => bytes.len() as u64,
    });
    let paths = if parts.is_empty() { Vec::new() } else { touched.map(|file| file.target.real.clone()).collect() };
    let bytes = if parts.is_empty() { 0 } else { bytes.sum() };
    let (diff, cuts) = parts.into_iter().map(|part| (part.diff, (part.file, part.cuts))).unzip();
    let proposal = Proposal { summary, diff, paths, bytes, notes, ..Proposal::default() };
    PatchProposal { proposal, done: done.trim_end().to_owned(), cuts }
}

/// Returns the part to show for a file. Returns `None` if the file is unchanged, or if it was moved, which is shown
/// with its destination.
fn file_part(at: usize, files: &[PatchPath], settings: &ToolSettings) -> Option<Part> {
    let file = &files[at];
    let name = display_path_one_line(&file.target.real, settings);
    let mut notes = file.notes.clone();
    if let FinalPathState::Absent = file.now {
        let moved = files.iter().any(|other| other.moved_from.as_deref().is_some_and(|from| file.is_at(from)));
        return if moved || file.is_new() { None } else { Some(deletion_part(at, file, name, settings)) };
    }
    let source = file.moved_from.as_deref().and_then(|from| files.iter().find(|other| other.is_at(from)));
    let old = source.unwrap_or(file);
    let old_name = display_path_one_line(&old.target.real, settings);
    let diff = FileDiff::with_title(&old_name, &name);
    let (verb, past, mut diff) = match (source, file.is_new()) {
        (Some(_), _) => ("Move", "Moved", diff.renamed(&old_name, &name)),
        (None, true) => ("Create", "Created", diff.created("100644")),
        (None, false) => ("Edit", "Edited", diff),
    };
    let shown_name = if source.is_some() { format!("{old_name} to {name}") } else { name.clone() };
    let (added, removed, cuts) = match (&file.now, old.text_before()) {
        (FinalPathState::Text(new), before) => {
            let LineDiff { hunks, added, removed, cuts } = text_diff(old, new, settings);
            if hunks.is_empty() && source.is_none() && !file.is_new() && before.is_some_and(|before| before == new) {
                return None;
            }
            notes.extend(before.map(|before| preservation_notes(before, &new.text)).unwrap_or_default());
            if new.text.contains('\0') {
                notes.push(HAS_NUL.to_owned());
            }
            if hunks.is_empty() && source.is_none() && before.is_some() {
                notes.push("changes only line endings or bytes that are not shown".to_owned());
            }
            let old_name = if old.is_new() { "/dev/null".to_owned() } else { format!("a/{old_name}") };
            diff = diff.with_hunks(&old_name, &format!("b/{name}"), hunks);
            (added, removed, cuts)
        }
        _ => (0, 0, Vec::new()),
    };
    Some(Part { verb, past, name: shown_name, diff, added, removed, notes, file: at, cuts })
}

fn text_diff(old: &PatchPath, new: &Document, settings: &ToolSettings) -> LineDiff {
    let before = old.text_before().map_or(String::new(), |document| prepare_text(&document.text, settings));
    compare(&before, &prepare_text(&new.text, settings))
}

fn deletion_part(at: usize, file: &PatchPath, name: String, settings: &ToolSettings) -> Part {
    let mut notes = file.notes.clone();
    let mut diff = FileDiff::with_title(&name, &name).deleted("100644");
    let mut removed = 0;
    let mut cuts = Vec::new();
    match removal(&file.target, settings) {
        Some((hunks, lines)) => {
            diff = diff.with_hunks(&format!("a/{name}"), "/dev/null", hunks);
            removed = lines;
            // A single hunk, which cannot be chosen separately.
            cuts.push(HunkLines { old: 0..lines, new: 0..0, name: None });
        }
        None => {
            if let PathBefore::Entry(survey) = &file.was {
                notes.push(format!("{} bytes, not shown", survey.bytes));
            }
        }
    }
    Part { verb: "Delete", past: "Deleted", name, diff, added: 0, removed, notes, file: at, cuts }
}
