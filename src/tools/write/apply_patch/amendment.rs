//! Patches in which the user has omitted or edited hunks.

use super::tree::{FinalPathState, PatchPath, PathBefore};
use super::{PatchChanges, PlannedPatch, changes};
use crate::protocol::{Amendable, Amendment, Hunk, HunkChoice, ToolError};
use crate::tools::document::content::Document;
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::settings::ToolSettings;
use crate::tools::write::amendment::{EditableFile, amendable_parts, texts};
use crate::tools::write::file_change::CurrentFile;

impl PatchChanges {
    /// Returns the two sides of a part that is shown, if they can be edited, which requires that it is a text file that
    /// is not moved.
    fn sides(&self, part: usize) -> Option<EditableFile<'_>> {
        let (at, cuts) = self.cuts.get(part)?;
        let file = self.files.get(*at)?;
        match (&file.was, &file.now) {
            (PathBefore::File(before @ (CurrentFile::Absent | CurrentFile::Text { .. })), FinalPathState::Text(after))
                if file.moved_from.is_none() =>
            {
                Some(EditableFile { target: &file.target, before, after, cuts })
            }
            _ => None,
        }
    }

    fn all_sides(&self) -> Vec<EditableFile<'_>> {
        (0..self.cuts.len()).filter_map(|part| self.sides(part)).collect()
    }
}

/// Returns the reason why a file's hunks cannot be chosen separately.
fn indivisible_reason(file: &PatchPath) -> &'static str {
    match (&file.now, &file.moved_from) {
        (FinalPathState::Absent, _) => "a file can only be deleted as a whole",
        (_, Some(_)) => "a moved file can only be changed as proposed",
        _ => "the file is not text, so it has no hunks",
    }
}

pub(super) fn amendable(changes: &PatchChanges, settings: &ToolSettings) -> (Amendable, Vec<String>) {
    let (mut offer, texts) = amendable_parts(&changes.all_sides(), settings);
    let mut own = std::mem::take(&mut offer.hunks).into_iter();
    for (part, (at, cuts)) in changes.cuts.iter().enumerate() {
        if changes.sides(part).is_some() {
            offer.hunks.extend(own.by_ref().take(cuts.len()));
        } else {
            let why = Some(indivisible_reason(&changes.files[*at]).to_owned());
            let hunk = Hunk { file: None, first: 0, end: 0, name: None, fixed: why };
            offer.hunks.extend(cuts.iter().map(|_| hunk.clone()));
        }
    }
    (offer, texts)
}

pub(super) fn amend(
    mut changed: PatchChanges,
    amendment: &Amendment,
    settings: &ToolSettings,
) -> Result<(CallDraft<PlannedPatch>, String), ToolError> {
    let own = match amendment {
        Amendment::Hunks { hunks } => Amendment::Hunks { hunks: own_choices(&changed, hunks)? },
        other => other.clone(),
    };
    let (texts, told) = texts(&changed.all_sides(), &own, settings)?;
    let places: Vec<usize> =
        (0..changed.cuts.len()).filter(|part| changed.sides(*part).is_some()).map(|part| changed.cuts[part].0).collect();
    for (at, text) in places.into_iter().zip(texts) {
        let file = &mut changed.files[at];
        file.now = match (text, &file.was) {
            (Some(text), _) => FinalPathState::Text(text),
            (None, PathBefore::File(CurrentFile::Text { document, .. })) => FinalPathState::Text(Document::clone(document)),
            (None, _) => FinalPathState::Absent,
        };
        file.notes.clear();
    }
    let (proposal, changes) = changes(changed.files, changed.actions, settings);
    let count = changes.steps.steps.len();
    if count == 0 {
        return Err(invalid("no changes remain; deny the call instead"));
    }
    Ok((CallDraft::changes(changes.actions.clone(), proposal, PlannedPatch::Apply(changes)), told))
}

/// Returns the choices for the hunks of text files. Fails unless all other hunks are applied.
fn own_choices(changes: &PatchChanges, choices: &[HunkChoice]) -> Result<Vec<HunkChoice>, ToolError> {
    let mut own = Vec::new();
    let mut rest = choices.iter();
    for (part, (_, cuts)) in changes.cuts.iter().enumerate() {
        let these: Vec<&HunkChoice> = rest.by_ref().take(cuts.len()).collect();
        if these.len() < cuts.len() {
            return Err(invalid("the choices do not cover all hunks of the patch"));
        }
        if changes.sides(part).is_some() {
            own.extend(these.into_iter().cloned());
        } else if these.iter().any(|choice| **choice != HunkChoice::Taken) {
            return Err(invalid(indivisible_reason(&changes.files[changes.cuts[part].0])));
        }
    }
    Ok(own)
}
