//! Changes that the user has edited: only some of the hunks, edited lines, or an entirely new text.

use super::file_change::{Change, CurrentFile, noting_nul, proposal_with_cuts, unencodable_text};
use crate::protocol::{Action, Amendable, Amendment, FileDiff, Hunk, HunkChoice, Proposal, Target, ToolError};
use crate::sys::file::Parents;
use crate::tools::diff::cuts::{HunkLines, indivisible_reason, with_choices};
use crate::tools::diff::{compare, prepare_text};
use crate::tools::document::content::{Document, Form};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::display_path_one_line;
use crate::tools::redaction::{refuse_exposure, restore_secrets, restorer};
use crate::tools::settings::ToolSettings;
use crate::tools::write::file_change::{ChangeParts, fit_encoding};
use std::fmt::Write as _;

/// Maximum number of bytes of edited text to report to the model.
const MAX_NOTE_BYTES: usize = 6_000;

/// One file of a change, with what is needed to edit it.
pub(in crate::tools) struct EditableFile<'a> {
    pub target: &'a Target,
    pub before: &'a CurrentFile,
    pub after: &'a Document,
    pub cuts: &'a [HunkLines],
}

impl ChangeParts {
    /// Creates an editable change, along with its proposal.
    pub(in crate::tools) fn propose(
        verb: &'static str,
        target: &Target,
        before: CurrentFile,
        after: Document,
        bytes: u64,
        settings: &ToolSettings,
    ) -> (Proposal, Box<Self>) {
        let (proposal, cuts) = proposal_with_cuts(verb, target, &before, &after.text, bytes, settings);
        (proposal, Box::new(Self { verb, before, after, cuts }))
    }
}

impl Change {
    fn sides(&self) -> Option<EditableFile<'_>> {
        let made = self.made.as_ref()?;
        Some(EditableFile { target: &self.target, before: &made.before, after: &made.after, cuts: &made.cuts })
    }

    /// Returns the parts that the user may edit, and the resulting content of the file.
    pub(in crate::tools) fn amendable(&self, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        amendable_parts(&self.sides().into_iter().collect::<Vec<_>>(), settings)
    }

    /// Applies the user's edits. Returns the new draft and a note about the edits for the model.
    pub(in crate::tools) fn amend(
        self,
        amendment: &Amendment,
        settings: &ToolSettings,
    ) -> Result<(CallDraft<Self>, String), ToolError> {
        let Some(sides) = self.sides() else {
            return Err(invalid(format!("the change to `{}` can only be approved as a whole, or denied", self.target.given)));
        };
        let (mut texts, told) = texts(&[sides], amendment, settings)?;
        let (Some(text), Some(made)) = (texts.pop().flatten(), self.made) else { return Err(nothing_left_error()) };
        let ChangeParts { verb, before, .. } = *made;
        let Some(content) = text.form.encode(&text.text) else {
            return Err(unencodable_text(&self.target.given, text.form, "the edited text"));
        };
        let has_nul = text.text.contains('\0');
        let (proposal, made) = ChangeParts::propose(verb, &self.target, before, text, content.len() as u64, settings);
        let past = proposal.summary.replacen("Edit", "Edited", 1).replacen("Create", "Created", 1).replacen("Write", "Wrote", 1);
        let change = Self { content, done: noting_nul(past, has_nul), made: Some(made), ..self };
        let target = change.target.clone();
        Ok((CallDraft::changes(vec![Action::Write { target }], proposal, change), told))
    }

    pub(in crate::tools) fn new(
        target: Target,
        content: Vec<u8>,
        parents: Parents,
        done: String,
        made: Box<ChangeParts>,
    ) -> Self {
        Self { target, content, before: made.before.image(), parents, done, made: Some(made) }
    }
}

fn nothing_left_error() -> ToolError {
    invalid("no changes remain; deny the call instead")
}

/// Returns the parts of these files that the user may edit, in the order of the diff, along with the resulting content
/// of each file.
pub(in crate::tools) fn amendable_parts(files: &[EditableFile<'_>], settings: &ToolSettings) -> (Amendable, Vec<String>) {
    let mut offer = Amendable::default();
    let mut texts = Vec::new();
    for (file, sides) in files.iter().enumerate() {
        let old = sides.before.text();
        let fixed = indivisible_reason(old, &sides.after.text, settings).map(str::to_owned);
        offer.files.push(display_path_one_line(&sides.target.real, settings));
        texts.push(prepare_text(&sides.after.text, settings));
        offer.hunks.extend(sides.cuts.iter().map(|cut| Hunk {
            file: Some(file),
            first: cut.new.start,
            end: cut.new.end,
            name: cut.name.as_deref().map(|name| settings.redactor.redact(name).text.into_owned()),
            fixed: fixed.clone(),
        }));
    }
    (offer, texts)
}

/// Returns the new text of each file, or `None` for a file in which no change is left, and a note for the model.
pub(in crate::tools) fn texts(
    files: &[EditableFile<'_>],
    amendment: &Amendment,
    settings: &ToolSettings,
) -> Result<(Vec<Option<Document>>, String), ToolError> {
    match amendment {
        Amendment::Hunks { hunks } => amend_hunks(files, hunks, settings),
        Amendment::File { file, text } => as_a_whole(files, *file, text, settings),
        Amendment::Effects { .. }
        | Amendment::Command { .. }
        | Amendment::First { .. }
        | Amendment::Offline
        | Amendment::Unsandboxed
        | Amendment::Background => Err(invalid("this call changes files; it has no command to edit")),
    }
}

fn amend_hunks(
    files: &[EditableFile<'_>],
    choices: &[HunkChoice],
    settings: &ToolSettings,
) -> Result<(Vec<Option<Document>>, String), ToolError> {
    let count: usize = files.iter().map(|sides| sides.cuts.len()).sum();
    if choices.len() != count {
        return Err(invalid(format!("the change has {count} hunks, but {} choices were given", choices.len())));
    }
    let mut texts = Vec::new();
    let mut told = Vec::new();
    let mut rest = choices;
    for sides in files {
        let (own, others) = rest.split_at(sides.cuts.len());
        let number = count - rest.len();
        rest = others;
        told.extend(
            sides.cuts.iter().zip(own).enumerate().map(|(at, (cut, choice))| {
                line(number + at + 1, count, (files.len() > 1).then_some(sides), cut, choice, settings)
            }),
        );
        if !own.is_empty() && own.iter().all(|choice| *choice == HunkChoice::Left) {
            texts.push(None);
            continue;
        }
        let restore = |text: &str| sides.restore_markers(text, settings);
        let text = with_choices((sides.before.text(), &sides.after.text), sides.cuts, own, settings, restore)?;
        let Some(text) = text else {
            let given = &sides.target.given;
            return Err(invalid(format!("the hunks of `{given}` cannot be separated; apply all of them, or none")));
        };
        texts.push(Some(sides.check_text(text, settings)?));
    }
    if texts.iter().all(Option::is_none) {
        return Err(nothing_left_error());
    }
    let told = format!("[The user did not apply this as you proposed it:\n{}]", told.join("\n"));
    Ok((texts, told))
}

/// Formats a choice, for example as `- hunk 1 of 2 (greet(), your lines 10 to 16): applied`.
fn line(
    number: usize,
    count: usize,
    file: Option<&EditableFile<'_>>,
    cut: &HunkLines,
    choice: &HunkChoice,
    settings: &ToolSettings,
) -> String {
    let mut place: Vec<String> = file.map(|sides| format!("`{}`", sides.target.given)).into_iter().collect();
    place.extend(cut.name.clone());
    place.push(match cut.new.len() {
        0 => format!("at your line {}", cut.new.start + 1),
        1 => format!("your line {}", cut.new.start + 1),
        _ => format!("your lines {} to {}", cut.new.start + 1, cut.new.end),
    });
    let place = settings.redactor.redact(&place.join(", ")).text.into_owned();
    let what = match choice {
        HunkChoice::Taken => "applied".to_owned(),
        HunkChoice::Left => "not applied; those lines are unchanged".to_owned(),
        HunkChoice::Edited { text } if text.is_empty() => "edited; removed".to_owned(),
        HunkChoice::Edited { text } => {
            format!("edited; replaced by\n{}", cap_note(&settings.redactor.redact(text).text))
        }
    };
    format!("- hunk {number} of {count} ({place}): {what}")
}

fn as_a_whole(
    files: &[EditableFile<'_>],
    file: usize,
    text: &str,
    settings: &ToolSettings,
) -> Result<(Vec<Option<Document>>, String), ToolError> {
    let Some(edited) = files.get(file) else { return Err(invalid("the change does not contain this file")) };
    let restored = edited.restore_markers(text, settings)?;
    let (whole, form, _) = fit_encoding(edited.before, &restored);
    let whole = edited.check_document(Document { text: whole, form }, &[text], settings)?;
    let name = display_path_one_line(&edited.target.real, settings);
    let (proposed, now) = (prepare_text(&edited.after.text, settings), prepare_text(&whole.text, settings));
    let diff = FileDiff::new(&format!("a/{name}"), &format!("b/{name}"), compare(&proposed, &now).hunks);
    let told = format!(
        "[The user edited `{}` before it was applied. Their changes to your proposal:\n{}]",
        edited.target.given,
        cap_note(&diff.to_string())
    );
    let as_proposed = |sides: &EditableFile<'_>| (!sides.cuts.is_empty()).then(|| sides.after.clone());
    let mut texts: Vec<_> = files.iter().map(as_proposed).collect();
    let same = matches!(edited.before, CurrentFile::Text { document, .. } if *document == whole);
    texts[file] = (!same).then_some(whole);
    if texts.iter().all(Option::is_none) {
        return Err(nothing_left_error());
    }
    Ok((texts, told))
}

fn cap_note(text: &str) -> String {
    let text = text.trim_end_matches('\n');
    if text.len() <= MAX_NOTE_BYTES {
        return text.to_owned();
    }
    let mut cut = crate::protocol::cut_position_before(text, MAX_NOTE_BYTES).min(text.len());
    cut = text[..cut].rfind('\n').unwrap_or(cut);
    let mut told = text[..cut].to_owned();
    let _ = write!(told, "\n({} more bytes: read the file)", text.len() - cut);
    told
}

impl EditableFile<'_> {
    /// Restores the markers in the user's text, which may come from the original or from the proposed file.
    fn restore_markers(&self, text: &str, settings: &ToolSettings) -> Result<String, ToolError> {
        let before = restore_secrets(&restorer(self.before.document(), settings), text, "the edited text", self.target);
        before.or_else(|error| {
            let proposed = settings.redactor.restorer(&crate::tools::document::replacement::with_lf(&self.after.text));
            restore_secrets(&proposed, text, "the edited text", self.target).map_err(|_| error)
        })
    }

    fn check_text(&self, text: String, settings: &ToolSettings) -> Result<Document, ToolError> {
        let form = match self.before {
            CurrentFile::Text { document, .. } if document.form.encode(&text).is_some() => document.form,
            CurrentFile::Text { .. } | CurrentFile::Absent | CurrentFile::NotText { .. } => self.after.form,
        };
        self.check_document(Document { text, form }, &[], settings)
    }

    /// Rejects text that would expose a secret in the file, unless the proposal or the user's own text already shows
    /// that secret.
    fn check_document(&self, document: Document, written: &[&str], settings: &ToolSettings) -> Result<Document, ToolError> {
        let proposed = prepare_text(&self.after.text, settings);
        let mut known = vec![proposed.as_str()];
        known.extend(written);
        refuse_exposure(
            &restorer(self.before.document(), settings),
            self.before.document(),
            &document.text,
            &known,
            settings,
            self.target,
        )?;
        let form = if document.form.encode(&document.text).is_some() { document.form } else { Form::Utf8 };
        Ok(Document { form, ..document })
    }
}
