//! The `EditFile` tool, which replaces passages in a file and leaves all other bytes unchanged.

use super::file_change::{Change, CurrentFile, commit, draft_mismatch, noting_nul, unencodable_text};
use super::large::{self, Large, Splice};
use super::matching::{Match, MatchFailure, find};
use super::{no_match, str_replace_editor};
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, Amendable, Amendment, PlaceChange, Target, ToolError};
use crate::sys::file::Parents;
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::document::content::{Document, Form};
use crate::tools::document::replacement::{Occurrences, line_number, replace_ranges, with_lf};
use crate::tools::draft::CallDraft;
use crate::tools::error::{amendment_error, invalid};
use crate::tools::paths::{ExpectedKind, Paths, not_found_error};
use crate::tools::redaction::{refuse_exposure, restore_secrets, restorer};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use crate::tools::write::edit_arguments::{Edit, EditArguments};
use crate::tools::write::file_change::{ChangeParts, not_text};
use std::ops::Range;
use std::sync::Arc;

const UNFIT: (&str, &str) = ("Edit", "the edits do not match");

pub(in crate::tools) struct EditFile;

pub(in crate::tools) enum Work {
    Apply(Change),
    Splice(Splice),
    /// The edit does not match. The error reveals file content, so it may be shown only if the policy permits reading
    /// the file.
    Explain(ToolError),
}

impl Tool for EditFile {
    const NAME: &'static str = "EditFile";
    const ALIASES: &'static [Alias<EditArguments>] = &[
        Alias::with_same_arguments("edit_file"),
        Alias::with_same_arguments("edit"),
        Alias::with_same_arguments("str_replace"),
        str_replace_editor::alias("str_replace_editor"),
        str_replace_editor::alias("str_replace_based_edit_tool"),
        Alias::with_same_arguments("replace_in_file"),
        Alias::with_same_arguments("replace"),
        Alias::with_same_arguments("search_replace"),
        Alias::with_same_arguments("MultiEdit"),
    ];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/EditFile.md");
    const RESTORES: bool = true;
    type Arguments = EditArguments;
    type Work = Work;

    fn actions(arguments: &EditArguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Write { target: paths.target("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: EditArguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        if arguments.edits.is_empty() {
            return Err(invalid("`edits` is empty; add at least one `{oldText, newText}`"));
        }
        let target = Paths::on_disk(settings).target("path", &arguments.path, ExpectedKind::File)?;
        if let Some(large) = Large::inspect(&target, settings)? {
            let (splice, proposal) = match large::plan_edits(&large, &arguments, &target, settings) {
                Ok(edited) => edited,
                Err(error) => return draft_mismatch(UNFIT, target, error, settings, Work::Explain),
            };
            return Ok(CallDraft::changes(vec![Action::Write { target }], proposal, Work::Splice(splice)));
        }
        let before = CurrentFile::read(&target, settings)?;
        let (document, loosely) = match apply_edits(&arguments, &target, &before, settings) {
            Ok(edited) => edited,
            Err(error) => return draft_mismatch(UNFIT, target, error, settings, Work::Explain),
        };
        let Some(content) = document.form.encode(&document.text) else {
            return Err(unencodable_text(&target.given, document.form, "`newText`"));
        };
        let verb = if matches!(before, CurrentFile::Absent) { "Create" } else { "Edit" };
        let has_nul = document.text.contains('\0');
        let (mut proposal, made) = ChangeParts::propose(verb, &target, before, document, content.len() as u64, settings);
        let done = proposal.summary.replacen("Edit", "Edited", 1).replacen("Create", "Created", 1);
        let mut done = noting_nul(done, has_nul);
        for note in loosely {
            done = format!("{done}; {note}");
            proposal.notes.push(note);
        }
        let change = Change::new(target.clone(), content, Parents::Create, done, made);
        Ok(CallDraft::changes(vec![Action::Write { target }], proposal, Work::Apply(change)))
    }

    fn planned_changes(work: &Work) -> Vec<PlaceChange> {
        match work {
            Work::Apply(change) => change.planned_changes(),
            Work::Splice(splice) => splice.planned_changes(),
            Work::Explain(_) => Vec::new(),
        }
    }

    fn proposed_texts(work: &Work) -> Vec<ProposedText> {
        match work {
            Work::Apply(change) => change.proposed_texts(),
            Work::Splice(_) | Work::Explain(_) => Vec::new(),
        }
    }

    fn amendable(work: &Work, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        match work {
            Work::Apply(change) => change.amendable(settings),
            Work::Splice(_) | Work::Explain(_) => (Amendable::default(), Vec::new()),
        }
    }

    fn amend(work: Work, amendment: &Amendment, settings: &ToolSettings) -> Result<(CallDraft<Work>, String), ToolError> {
        match work {
            Work::Apply(change) => {
                let (draft, told) = change.amend(amendment, settings)?;
                Ok((draft.map(Work::Apply), told))
            }
            Work::Splice(_) | Work::Explain(_) => Err(amendment_error()),
        }
    }

    fn run(work: Work, settings: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || match work {
            Work::Apply(change) => commit(&change, &settings.session.seen),
            Work::Splice(splice) => splice.commit(&settings.session.seen, &context.kill),
            Work::Explain(error) => Err(error.into()),
        })
    }
}

/// Applies all edits to the document. Returns the result along with notes on matches that were not exact.
fn apply_edits(
    arguments: &EditArguments,
    target: &Target,
    before: &CurrentFile,
    settings: &ToolSettings,
) -> Result<(Document, Vec<String>), ToolError> {
    let mut document = match before {
        CurrentFile::Absent if arguments.edits[0].old_text.is_empty() => Document { text: String::new(), form: Form::Utf8 },
        CurrentFile::Absent => return Err(not_found_error(target, settings)),
        CurrentFile::Text { document, .. } => document.clone(),
        CurrentFile::NotText { why, .. } => return Err(not_text(target, *why)),
    };
    let restorer = restorer(before.document(), settings);
    let original = document.text.clone();
    let mut notes = Vec::new();
    for (index, given) in arguments.edits.iter().enumerate() {
        let edit = Edit {
            old_text: restore_secrets(&restorer, &given.old_text, &format!("`edits[{index}].oldText`"), target)?,
            new_text: restore_secrets(&restorer, &given.new_text, &format!("`edits[{index}].newText`"), target)?,
            replace_all: given.replace_all,
        };
        let one = EditStep { index, edit: &edit, target, settings, original: &original };
        let (text, how) = one.apply(&document.text, given)?;
        document.text = text;
        let which =
            if arguments.edits.len() > 1 { format!("edit {} of {} ", index + 1, arguments.edits.len()) } else { String::new() };
        notes.extend(how.map(|how| format!("{which}matched {how}")));
    }
    if document.text == original && !original.is_empty() {
        return Err(invalid(format!("no change: the edits together leave `{}` as it is; nothing was written", target.given)));
    }
    let written: Vec<&str> = arguments.edits.iter().map(|edit| edit.new_text.as_str()).collect();
    refuse_exposure(&restorer, before.document(), &document.text, &written, settings, target)?;
    Ok((document, notes))
}

/// One edit of a call. It is applied to the result of the edits before it.
struct EditStep<'a> {
    index: usize,
    edit: &'a Edit,
    target: &'a Target,
    settings: &'a ToolSettings,
    /// The text as it was before the first edit.
    original: &'a str,
}

impl EditStep<'_> {
    /// Applies the edit. Returns the resulting text and, if the match was not exact, a description of how it matched.
    fn apply(&self, text: &str, given: &Edit) -> Result<(String, Option<String>), ToolError> {
        let (edit, given_path) = (self.edit, &self.target.given);
        let at = format!("`edits[{}].oldText`", self.index);
        if edit.old_text.is_empty() {
            if text.is_empty() {
                return Ok((edit.new_text.clone(), None));
            }
            return Err(invalid(format!("{at} is empty, and `{given_path}` is not; specify the text to replace")));
        }
        let same = |why: &str| Err(invalid(format!("no change in `edits[{}]`: {why}", self.index)));
        if edit.old_text == edit.new_text {
            return same("`oldText` and `newText` are the same");
        }
        let plain = with_lf(text);
        let hidden = self.settings.redactor.redacted_ranges(&plain);
        let which = if edit.replace_all == Some(true) { Occurrences::All } else { Occurrences::TheOnly };
        match find(&plain, &with_lf(&edit.old_text), &with_lf(&edit.new_text), which, &hidden) {
            Ok(Match { places, how }) => {
                let result = replace_ranges(text, places.iter().map(|place| (place.range.clone(), place.new.as_str())));
                match how {
                    Some(how) if result == text => same(&format!("`newText` is already there (matched {how})")),
                    how => Ok((result, how)),
                }
            }
            Err(missed) => Err(self.misfit(&at, text, &plain, &hidden, missed, given)),
        }
    }

    fn misfit(
        &self,
        at: &str,
        text: &str,
        plain: &str,
        hidden: &[Range<usize>],
        missed: MatchFailure,
        given: &Edit,
    ) -> ToolError {
        let path = &self.target.given;
        invalid(match missed {
            MatchFailure::Several { places, how } => {
                let (count, shown) = no_match::describe_places(plain, &places, hidden);
                let how = how.map(|how| format!("does not match exactly; {how}, it ")).unwrap_or_default();
                format!(
                    "not unique: {at} {how}occurs in `{path}` {count}; nothing was changed. Add lines around it until it is \
                     unique, or set `replaceAll`\n{shown}"
                )
            }
            MatchFailure::Nowhere => {
                // The error quotes the redacted text.
                let closest = no_match::closest(&self.settings.redactor.redact(text).text, &given.old_text);
                let earlier = if self.index > 0 && with_lf(self.original).contains(&with_lf(&self.edit.old_text)) {
                    "It was there before the earlier edits of this call; each edit applies to their result. "
                } else {
                    ""
                };
                format!("not found: {at} is not in `{path}`; nothing was changed. {earlier}{closest}")
            }
            MatchFailure::Indentation(range) => format!(
                "not found: {at} is in `{path}` only with different indentation, from line {}, and the indentation of `newText` \
                 is ambiguous; nothing was changed. Use the indentation of the file in both",
                line_number(plain, range.start)
            ),
            MatchFailure::Elided => format!(
                "not found: {at} uses `...` for omitted lines, but `newText` does not in the same places; nothing was changed. \
                 Write the full lines"
            ),
        })
    }
}
