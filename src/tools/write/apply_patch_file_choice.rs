//! The choice of which files and hunks of a patch file are applied.

use super::amendment::{EditableFile, amendable_parts, texts};
use super::apply_patch_file::{PlannedFile, Work, draft};
use super::file_change::CurrentFile;
use crate::protocol::{Amendable, Amendment, ErrorCode, Hunk, HunkChoice, ToolError};
use crate::tools::diff::cuts;
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::patch_file::FileState;
use crate::tools::settings::ToolSettings;

/// Choices for the hunks of a patch, separated by kind of file.
struct Choices {
    /// Choices for the hunks of the editable texts, in order.
    of_texts: Vec<HunkChoice>,
    /// For each file that is not an editable text, whether it is omitted.
    left: Vec<bool>,
    /// For each file, whether any of its hunks was edited.
    edited: Vec<bool>,
}

impl PlannedFile {
    /// Returns the two sides of the file if it can be edited, or `None` if it has no hunks, is deleted, or is not text.
    fn sides(&self) -> Option<EditableFile<'_>> {
        let is_text = matches!(self.current, CurrentFile::Absent | CurrentFile::Text { .. });
        let after = self.document.as_ref().filter(|_| is_text && !self.cuts.is_empty())?;
        Some(EditableFile { target: &self.target, before: &self.current, after, cuts: &self.cuts })
    }

    /// Returns whether the file has hunks but none of them can be omitted separately.
    pub(super) fn is_indivisible(&self, settings: &ToolSettings) -> bool {
        match self.sides() {
            Some(sides) => cuts::indivisible_reason(sides.before.text(), &sides.after.text, settings).is_some(),
            None => indivisible_reason(self).is_some(),
        }
    }
}

impl Work {
    /// Returns the hunks that can be omitted, in the order of the diff. If a file is deleted, its hunk stands for the
    /// whole file.
    pub(super) fn amendable(&self, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        let sides: Vec<EditableFile<'_>> = self.files.iter().filter_map(PlannedFile::sides).collect();
        let (mut offer, texts) = amendable_parts(&sides, settings);
        let mut own = std::mem::take(&mut offer.hunks).into_iter();
        for file in &self.files {
            if file.sides().is_some() {
                offer.hunks.extend(own.by_ref().take(file.cuts.len()));
            } else {
                let hunk = Hunk { file: None, first: 0, end: 0, name: None, fixed: indivisible_reason(file) };
                offer.hunks.extend(file.cuts.iter().map(|_| hunk.clone()));
            }
        }
        (offer, texts)
    }

    /// Reduces the patch to what the user chose. Returns the new draft and a note about the choice for the
    /// conversation. The actions remain those of the whole call, because omitting some files makes no difference to how
    /// the policy checks the others.
    pub(super) fn amend(self, amendment: &Amendment, settings: &ToolSettings) -> Result<(CallDraft<Self>, String), ToolError> {
        let Self { mut files, actions, review, .. } = self;
        let mut left = vec![false; files.len()];
        let amendment = match amendment {
            Amendment::Hunks { hunks } => {
                let choices = split(&files, hunks)?;
                left = choices.left;
                files.iter_mut().zip(choices.edited).for_each(|(file, edited)| file.is_edited |= edited);
                Amendment::Hunks { hunks: choices.of_texts }
            }
            // All other files stay as proposed. aye requests approval again, so that nothing is applied that was not
            // shown.
            Amendment::File { file, .. } => {
                let edited = files.iter_mut().filter(|file| file.sides().is_some()).nth(*file);
                if let Some(file) = edited {
                    file.is_edited = true;
                }
                amendment.clone()
            }
            other => other.clone(),
        };
        let is_empty = |amendment: &Amendment| match amendment {
            Amendment::Hunks { hunks } => hunks.iter().all(|choice| *choice == HunkChoice::Left),
            _ => false,
        };
        let sides: Vec<EditableFile<'_>> = files.iter().filter_map(PlannedFile::sides).collect();
        let (chosen, told) = if is_empty(&amendment) {
            (vec![None; sides.len()], "[The user applied none of the changes to text files.]".to_owned())
        } else {
            texts(&sides, &amendment, settings)?
        };
        let mut chosen = chosen.into_iter();
        for (file, left) in files.iter_mut().zip(&mut left) {
            if file.sides().is_none() {
                continue;
            }
            match chosen.next().flatten() {
                Some(document) => file.set_document(document)?,
                None => *left = true,
            }
        }
        let mut left = left.into_iter();
        files.retain(|file| !left.next().unwrap_or(false) && file.entry.base != file.entry.result);
        if files.is_empty() {
            return Err(invalid("no changes remain; nothing was applied"));
        }
        Ok((draft(files, (actions, review), settings)?, told))
    }

    /// Records the results before they are written, if the patch has a record. A file that the user edited is not
    /// recorded, so later changes to it are treated as conflicts and do not overwrite the edit.
    pub(super) fn record_results(&self) -> Result<(), ToolError> {
        let Some(review) = &self.review else { return Ok(()) };
        let recorded = self.files.iter().filter(|file| !file.is_edited);
        let results: Vec<(String, Option<FileState>)> =
            recorded.map(|file| (file.entry.path.clone(), file.entry.result.clone())).collect();
        review.record(&results).map_err(|why| {
            ToolError::new(ErrorCode::ToolExecutionFailed, format!("cannot record the changes: {why}; nothing was changed"))
        })
    }
}

/// Returns the reason why a file without editable text cannot be omitted, or `None` if it can.
fn indivisible_reason(file: &PlannedFile) -> Option<String> {
    (file.cuts.len() > 1).then(|| "the file can only be applied as a whole".to_owned())
}

/// Separates the choices for all hunks by kind of file.
fn split(files: &[PlannedFile], choices: &[HunkChoice]) -> Result<Choices, ToolError> {
    let count: usize = files.iter().map(|file| file.cuts.len()).sum();
    if choices.len() != count {
        return Err(invalid(format!("the patch has {count} hunks, but {} choices were given", choices.len())));
    }
    let (mut of_texts, mut left, mut edited) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = choices;
    for file in files {
        let (own, others) = rest.split_at(file.cuts.len());
        rest = others;
        edited.push(own.iter().any(|choice| matches!(choice, HunkChoice::Edited { .. })));
        if file.sides().is_some() {
            of_texts.extend_from_slice(own);
            left.push(false);
            continue;
        }
        let is_left = !own.is_empty() && own.iter().all(|choice| *choice == HunkChoice::Left);
        if !is_left && own.iter().any(|choice| *choice != HunkChoice::Taken) {
            return Err(invalid(format!("`{}` can only be applied as a whole, or left out", file.target.given)));
        }
        left.push(is_left);
    }
    Ok(Choices { of_texts, left, edited })
}
