//! The files of a patch as they change from section to section, before anything is written.

use super::apply::apply;
use super::explain;
use super::find::MatchLevel;
use super::parse::{FileOperation, PatchHunk, PatchLine, PatchSection};
use super::steps::PatchSteps;
use crate::policy::redact::{Restorer, has_marker};
use crate::ports::ProposedText;
use crate::protocol::{Place, Target, ToolError};
use crate::sys::file::PreImage;
use crate::sys::file::transaction::{self, ExpectedEntry, Step};
use crate::sys::file::tree::Survey;
use crate::tools::document::content::Document;
use crate::tools::document::replacement::with_lf;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, not_found_error};
use crate::tools::redaction::{refuse_exposure, restore_secrets, restorer};
use crate::tools::settings::ToolSettings;
use crate::tools::write::file_change::{CurrentFile, fit_encoding, not_text, unencodable_text};
use crate::tools::write::git_guard::{Written, guard};
use crate::tools::write::tree_change::{check_exists, inspect};
use std::path::{Path, PathBuf};

pub(super) struct Tree<'a> {
    paths: &'a Paths<'a>,
    pub files: Vec<PatchPath>,
}

/// One of the paths in a patch.
pub(super) struct PatchPath {
    pub target: Target,
    pub was: PathBefore,
    pub now: FinalPathState,
    /// Path from which the content was moved.
    pub moved_from: Option<PathBuf>,
    /// Notes on how the hunks were matched.
    pub notes: Vec<String>,
}

impl PatchPath {
    /// Returns the text before and after the patch, provided that both are known.
    pub(super) fn proposed_text(&self) -> Option<ProposedText> {
        let PathBefore::File(before) = &self.was else { return None };
        let after = match &self.now {
            FinalPathState::Absent => None,
            FinalPathState::Text(document) => Some(document.text.clone()),
            FinalPathState::Bytes(_) => return None,
        };
        let before = before.document().map(|document| document.text.clone());
        Some(ProposedText { path: self.target.real.clone(), before, after })
    }
}

/// State of the path before the patch.
pub(super) enum PathBefore {
    File(CurrentFile),
    /// A path that is to be deleted, so its content is not needed.
    Entry(Box<Survey>),
}

pub(super) enum FinalPathState {
    Absent,
    Text(Document),
    /// Content that is not text, of which only the path changes.
    Bytes(Vec<u8>),
}

pub(super) enum PatchFault {
    Plain(ToolError),
    /// An error that reveals content of the file `target`.
    Told {
        target: Target,
        error: ToolError,
    },
}

impl From<ToolError> for PatchFault {
    fn from(error: ToolError) -> Self {
        Self::Plain(error)
    }
}

impl<'a> Tree<'a> {
    pub(crate) fn new(paths: &'a Paths<'a>) -> Self {
        Self { paths, files: Vec::new() }
    }

    pub(crate) fn apply(&mut self, section: &PatchSection) -> Result<(), PatchFault> {
        match &section.what {
            FileOperation::Add { content } => self.add(section, content),
            FileOperation::Delete => self.delete(section),
            FileOperation::Update { move_to, hunks } => self.update(section, move_to.as_deref(), hunks),
        }
    }

    /// Returns the index of a section's file. The file is read when it is first used.
    fn file(&mut self, path: &str) -> Result<usize, ToolError> {
        let target = self.paths.target("patch", path, ExpectedKind::File)?;
        if let Some(known) = self.files.iter().position(|file| file.target.real == target.real) {
            let file = &mut self.files[known];
            // A deleted and recreated file is replaced.
            if let PathBefore::Entry(_) = &file.was {
                file.was = PathBefore::File(CurrentFile::read(&target, self.paths.settings)?);
            }
            return Ok(known);
        }
        if self.files.iter().any(|file| file.target.given == path) {
            let message =
                format!("`{path}` is a symlink that the patch deletes, so it cannot also be written; nothing was changed");
            return Err(invalid(message));
        }
        let before = CurrentFile::read(&target, self.paths.settings)?;
        let now = match &before {
            CurrentFile::Absent => FinalPathState::Absent,
            CurrentFile::Text { document, .. } => FinalPathState::Text(document.clone()),
            CurrentFile::NotText { bytes, .. } => FinalPathState::Bytes(bytes.clone()),
        };
        self.files.push(PatchPath { target, was: PathBefore::File(before), now, moved_from: None, notes: Vec::new() });
        Ok(self.files.len() - 1)
    }

    fn add(&mut self, section: &PatchSection, content: &str) -> Result<(), PatchFault> {
        let settings = self.paths.settings;
        let index = self.file(&section.path)?;
        let file = &mut self.files[index];
        let restorer = file.restorer(settings);
        let at = format!("line {} of the patch", section.line);
        let told = |target: &Target| {
            let target = target.clone();
            move |error| PatchFault::Told { target, error }
        };
        let given = restore_secrets(&restorer, content, &at, &file.target).map_err(told(&file.target))?;
        let absent = CurrentFile::Absent;
        let before = match &file.was {
            PathBefore::File(before) => before,
            PathBefore::Entry(_) => &absent,
        };
        let (text, form, note) = fit_encoding(before, &given);
        refuse_exposure(&restorer, before.document(), &text, &[content], settings, &file.target).map_err(told(&file.target))?;
        if !matches!(before, CurrentFile::Absent) {
            file.notes.push("replaces the whole file".to_owned());
        }
        file.notes.extend(note);
        file.now = FinalPathState::Text(Document { text, form });
        Ok(())
    }

    fn delete(&mut self, section: &PatchSection) -> Result<(), PatchFault> {
        let settings = self.paths.settings;
        let target = self.paths.entry("patch", &section.path)?;
        if let Some(known) = self.files.iter_mut().find(|file| file.target.real == target.real) {
            if matches!(known.now, FinalPathState::Absent) {
                return Err(deleted_error(section).into());
            }
            known.now = FinalPathState::Absent;
            known.moved_from = None;
            return Ok(());
        }
        check_exists(&target, settings)?;
        guard(&target)?;
        if target.place == Place::Directory {
            let message = format!(
                "line {} of the patch: `{}` is a directory, and a patch can only delete files; nothing was changed. Use Delete",
                section.line, section.path
            );
            return Err(invalid(message).into());
        }
        let survey = inspect(&target, &[], settings, &*settings.paths.may_delete)?.survey;
        self.files.push(PatchPath {
            target,
            was: PathBefore::Entry(Box::new(survey)),
            now: FinalPathState::Absent,
            moved_from: None,
            notes: Vec::new(),
        });
        Ok(())
    }

    fn update(&mut self, section: &PatchSection, move_to: Option<&str>, hunks: &[PatchHunk]) -> Result<(), PatchFault> {
        let index = self.file(&section.path)?;
        if !hunks.is_empty() {
            self.change(index, section, hunks)?;
        }
        let settings = self.paths.settings;
        if matches!(self.files[index].now, FinalPathState::Absent) {
            return Err(self.missing_error(index, section, settings).into());
        }
        let Some(to) = move_to else { return Ok(()) };
        let there = self.file(to)?;
        if there == index {
            return Ok(());
        }
        let now = std::mem::replace(&mut self.files[index].now, FinalPathState::Absent);
        let source = &mut self.files[index];
        // A file created by the patch has no owner and mode to preserve.
        let from = source.moved_from.take().or_else(|| (!source.is_new()).then(|| source.target.real.clone()));
        let notes = std::mem::take(&mut self.files[index].notes);
        let file = &mut self.files[there];
        if !matches!(file.now, FinalPathState::Absent) {
            file.notes.push("replaces an existing file".to_owned());
        }
        file.now = now;
        file.moved_from = from.filter(|from| *from != file.target.real);
        file.notes.extend(notes);
        Ok(())
    }

    /// Returns the file that originally held the content. Any redaction markers that the model saw are from that file.
    fn origin(&self, index: usize) -> &PatchPath {
        let file = &self.files[index];
        let from = file.moved_from.as_ref().and_then(|from| self.files.iter().find(|other| other.is_at(from)));
        from.unwrap_or(file)
    }

    fn missing_error(&self, index: usize, section: &PatchSection, settings: &ToolSettings) -> ToolError {
        match &self.files[index].was {
            PathBefore::File(CurrentFile::Absent) => not_found_error(&self.files[index].target, settings),
            PathBefore::File(_) | PathBefore::Entry(_) => deleted_error(section),
        }
    }

    /// Applies hunks to a file's text.
    fn change(&mut self, index: usize, section: &PatchSection, hunks: &[PatchHunk]) -> Result<(), PatchFault> {
        let settings = self.paths.settings;
        let file = &self.files[index];
        let target = file.target.clone();
        let told = |error| PatchFault::Told { target: target.clone(), error };
        let document = match (&file.now, &file.was) {
            (FinalPathState::Text(document), _) => document.clone(),
            (FinalPathState::Absent, _) => return Err(self.missing_error(index, section, settings).into()),
            (FinalPathState::Bytes(_), PathBefore::File(CurrentFile::NotText { why, .. })) => {
                return Err(not_text(&target, *why).into());
            }
            (FinalPathState::Bytes(_), _) => return Err(invalid(format!("`{}` is not text", section.path)).into()),
        };
        let restorer = self.origin(index).restorer(settings);
        let whole =
            hunks.iter().map(|hunk| restore_hunk(hunk, &restorer, &target)).collect::<Result<Vec<_>, _>>().map_err(told)?;
        let hidden = settings.redactor.redacted_ranges(&with_lf(&document.text));
        let applied = apply(&document.text, &whole, &hidden)
            .map_err(|misfit| told(explain::misfit(&misfit, hunks, section, &document.text, &settings.redactor)))?;
        if let PathBefore::File(before) = &self.origin(index).was {
            let written: Vec<&str> = hunks.iter().flat_map(PatchHunk::added_lines).collect();
            refuse_exposure(&restorer, before.document(), &applied.text, &written, settings, &target).map_err(told)?;
        }
        if document.form.encode(&applied.text).is_none() {
            return Err(unencodable_text(&section.path, document.form, "the patch").into());
        }
        let file = &mut self.files[index];
        for (hunk, places) in hunks.iter().zip(&applied.places) {
            let how = match places.level {
                MatchLevel::Exact => None,
                MatchLevel::TrailingSpace => Some("trailing whitespace"),
                MatchLevel::OuterSpace => Some("leading and trailing whitespace"),
                MatchLevel::Typography => Some("typographic characters and whitespace"),
            };
            let line = hunk.line;
            file.notes.extend(how.map(|what| format!("the hunk at line {line} of the patch matched ignoring {what}")));
            if let Some(header) = &places.unknown_header {
                file.notes.push(format!(
                    "no line is `{header}`, the header at line {line} of the patch; the lines match only one place"
                ));
            }
            if places.not_at_end {
                file.notes.push(format!(
                    "the hunk at line {line} of the patch is not at the end of the file, although `*** End of File` follows it"
                ));
            }
        }
        file.now = FinalPathState::Text(Document { text: applied.text, form: document.form });
        Ok(())
    }

    /// Returns the paths that exist once the patch has been applied.
    pub(crate) fn written_paths(&self) -> Vec<Written<'_>> {
        let there = self.files.iter().filter(|file| !matches!(file.now, FinalPathState::Absent));
        there.map(|file| (file.target.real.as_path(), file.target.given.as_str())).collect()
    }
}

/// Returns the steps, including those that remove the sources of moves, along with the paths as written in the patch.
pub(super) fn steps(files: &[PatchPath]) -> PatchSteps {
    let mut steps = Vec::new();
    let mut given = Vec::new();
    for file in files {
        let before = match &file.was {
            PathBefore::File(before) => before.image(),
            PathBefore::Entry(_) => PreImage::Absent,
        };
        let what = match (&file.was, &file.now) {
            (PathBefore::File(CurrentFile::Absent), FinalPathState::Absent) => continue,
            (PathBefore::Entry(survey), FinalPathState::Absent) => {
                transaction::PathOperation::Remove { before: ExpectedEntry::Entry(survey.clone()) }
            }
            (PathBefore::File(_), FinalPathState::Absent) => {
                transaction::PathOperation::Remove { before: ExpectedEntry::Content(before) }
            }
            (_, now) => {
                let content = match now {
                    FinalPathState::Text(Document { text, form }) => {
                        form.encode(text).unwrap_or_else(|| text.clone().into_bytes())
                    }
                    FinalPathState::Bytes(bytes) => bytes.clone(),
                    FinalPathState::Absent => continue,
                };
                if file.moved_from.is_none() && before == PreImage::hash(&content) {
                    continue;
                }
                transaction::PathOperation::Write { content, before, like: file.moved_from.clone(), executable: None }
            }
        };
        given.push((file.target.given.clone(), before));
        steps.push(Step { real: file.target.real.clone(), what });
    }
    PatchSteps { steps, given }
}

impl PatchPath {
    fn restorer(&self, settings: &ToolSettings) -> Restorer {
        restorer(self.text_before(), settings)
    }

    /// Returns the original text with its encoding, if the file is text.
    pub(crate) fn text_before(&self) -> Option<&Document> {
        match &self.was {
            PathBefore::File(before) => before.document(),
            PathBefore::Entry(_) => None,
        }
    }

    pub(crate) fn is_new(&self) -> bool {
        matches!(self.was, PathBefore::File(CurrentFile::Absent))
    }

    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.target.real == path
    }
}

/// Restores the markers in a hunk. This may turn one line into several, because a secret may span several lines.
fn restore_hunk(hunk: &PatchHunk, restorer: &Restorer, target: &Target) -> Result<PatchHunk, ToolError> {
    let mut lines = Vec::with_capacity(hunk.lines.len());
    for line in &hunk.lines {
        if has_marker(&line.text).is_none() {
            lines.push(line.clone());
            continue;
        }
        let whole = restore_secrets(restorer, &line.text, &format!("the hunk at line {} of the patch", hunk.line), target)?;
        lines.extend(whole.split('\n').map(|text| PatchLine { text: text.to_owned(), ..line.clone() }));
    }
    Ok(PatchHunk { lines, ..hunk.clone() })
}

fn deleted_error(section: &PatchSection) -> ToolError {
    invalid(format!(
        "line {} of the patch: `{}` no longer exists after an earlier section; nothing was changed",
        section.line, section.path
    ))
}
