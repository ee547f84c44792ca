//! The `TextPatch` tool, which replaces, inserts or deletes sections or lines of a text and leaves all other bytes
//! unchanged.

use super::format;
use super::outline::{Outline, line_starts};
use super::splice;
use super::splice::{LineSpan, SpliceKind};
use super::{redacted_lines, section};
use crate::policy::redact::Restorer;
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, Amendable, Amendment, PlaceChange, Target, ToolError, format_count};
use crate::sys::file::Parents;
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::document::content::Document;
use crate::tools::document::replacement::with_lf;
use crate::tools::draft::CallDraft;
use crate::tools::error::{amendment_error, invalid};
use crate::tools::paths::{ExpectedKind, Paths, not_found_error};
use crate::tools::redaction::{refuse_exposure, restore_secrets, restorer};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use crate::tools::write::file_change::{Change, ChangeParts, CurrentFile, commit, draft_mismatch, noting_nul, unencodable_text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::tools) struct TextPatch;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    path: String,
    operations: Vec<Operation>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Operation {
    #[schemars(extend("enum" = ["replace", "delete", "insertBefore", "insertAfter"]))]
    operation: String,
    /// A heading, such as `Usage` or `Usage > Install`; or give `startLine`.
    section: Option<String>,
    /// First line, from 1.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// Last line; `startLine` by default.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
    /// New content, in complete lines. A replaced section keeps its heading unless the content starts with one.
    content: Option<String>,
    /// Current content; the call fails if it differs.
    expected: Option<String>,
}

pub(in crate::tools) enum Work {
    Apply(Change),
    /// The operations do not match the file. The error reveals file content, so it may be shown only if the policy
    /// permits reading the file.
    Explain(ToolError),
}

impl Tool for TextPatch {
    const NAME: &'static str = "TextPatch";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("text_patch"),
        Alias::with_same_arguments("patch_text"),
        Alias::with_same_arguments("edit_section"),
        Alias::with_same_arguments("edit_lines"),
    ];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/TextPatch.md");
    const RESTORES: bool = true;
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Write { target: paths.target("path", &arguments.path, ExpectedKind::File)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        if arguments.operations.is_empty() {
            return Err(invalid("`operations` is empty; add at least one, such as `{operation, section, content}`"));
        }
        let target = Paths::on_disk(settings).target("path", &arguments.path, ExpectedKind::File)?;
        let before = CurrentFile::read(&target, settings)?;
        if arguments.operations.iter().any(|operation| operation.start_line.is_some()) {
            settings.session.seen.check(&target)?;
        }
        let document = match apply_operations(&arguments.operations, &target, &before, settings) {
            Ok(document) => document,
            Err(error) => return draft_mismatch(("Edit", "the operations do not match"), target, error, settings, Work::Explain),
        };
        let Some(content) = document.form.encode(&document.text) else {
            return Err(unencodable_text(&target.given, document.form, "`content`"));
        };
        let has_nul = document.text.contains('\0');
        let (proposal, made) = ChangeParts::propose("Edit", &target, before, document, content.len() as u64, settings);
        let done = noting_nul(proposal.summary.replacen("Edit", "Edited", 1), has_nul);
        let change = Change::new(target.clone(), content, Parents::MustExist, done, made);
        Ok(CallDraft::changes(vec![Action::Write { target }], proposal, Work::Apply(change)))
    }

    fn planned_changes(work: &Work) -> Vec<PlaceChange> {
        match work {
            Work::Apply(change) => change.planned_changes(),
            Work::Explain(_) => Vec::new(),
        }
    }

    fn proposed_texts(work: &Work) -> Vec<ProposedText> {
        match work {
            Work::Apply(change) => change.proposed_texts(),
            Work::Explain(_) => Vec::new(),
        }
    }

    fn amendable(work: &Work, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        match work {
            Work::Apply(change) => change.amendable(settings),
            Work::Explain(_) => (Amendable::default(), Vec::new()),
        }
    }

    fn amend(work: Work, amendment: &Amendment, settings: &ToolSettings) -> Result<(CallDraft<Work>, String), ToolError> {
        match work {
            Work::Apply(change) => {
                let (draft, told) = change.amend(amendment, settings)?;
                Ok((draft.map(Work::Apply), told))
            }
            Work::Explain(_) => Err(amendment_error()),
        }
    }

    fn run(work: Work, settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || match work {
            Work::Apply(change) => commit(&change, &settings.session.seen),
            Work::Explain(error) => Err(error.into()),
        })
    }
}

/// Applies all operations to the document.
fn apply_operations(
    operations: &[Operation],
    target: &Target,
    before: &CurrentFile,
    settings: &ToolSettings,
) -> Result<Document, ToolError> {
    let document = match before {
        CurrentFile::Absent => {
            let mut error = not_found_error(target, settings);
            error.message.push_str(" (to create a file, use WriteFile)");
            return Err(error);
        }
        CurrentFile::NotText { .. } => {
            return Err(invalid(format!("`{}` is not text and cannot be edited by line; use RunCommand instead", target.given)));
        }
        CurrentFile::Text { document, .. } => document,
    };
    let restorer = restorer(before.document(), settings);
    let plain = with_lf(&document.text);
    let place =
        PatchTarget { target, plain: &plain, outline: outline(&plain, target, settings), starts: line_starts(&plain), settings };
    let mut changes = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        changes.push(place.change(operation, index, &restorer)?);
    }
    let text = splice::apply(&document.text, changes).map_err(|(first, second)| {
        invalid(format!(
            "`operations[{first}]` and `operations[{second}]` overlap; nothing was changed. Remove one, or combine them"
        ))
    })?;
    let written: Vec<&str> = operations.iter().filter_map(|operation| operation.content.as_deref()).collect();
    refuse_exposure(&restorer, before.document(), &text, &written, settings, target)?;
    if text == document.text {
        return Err(invalid(format!("the operations change nothing: `{}` already has this content", target.given)));
    }
    Ok(Document { text, form: document.form })
}

/// Outlines the redacted text, so no error can reveal a secret. If redaction changes the number of lines, the outline
/// is empty.
fn outline(plain: &str, target: &Target, settings: &ToolSettings) -> Outline {
    redacted_lines::lines(plain, &settings.redactor)
        .map_or_else(Outline::default, |lines| format::outline(&target.real, &redacted_lines::join_lines(&lines)))
}

/// The text to which the operations refer.
struct PatchTarget<'a> {
    target: &'a Target,
    plain: &'a str,
    outline: Outline,
    starts: Vec<usize>,
    settings: &'a ToolSettings,
}

impl PatchTarget<'_> {
    fn lines(&self) -> Vec<&str> {
        self.plain.split_inclusive('\n').collect()
    }

    fn change(&self, operation: &Operation, index: usize, restorer: &Restorer) -> Result<splice::Change, ToolError> {
        let at = format!("operations[{index}]");
        let kind = kind(&operation.operation, &at)?;
        let content = match (&operation.content, kind) {
            (Some(_), SpliceKind::Delete) => {
                return Err(invalid(format!("`{at}`: `delete` takes no `content`; remove it, or use `replace`")));
            }
            (None, SpliceKind::Delete) => String::new(),
            (Some(content), _) => with_lf(&restore_secrets(restorer, content, &format!("`{at}.content`"), self.target)?),
            (None, _) => return Err(invalid(format!("`{at}.content` is missing; specify the new text"))),
        };
        if content.is_empty() && matches!(kind, SpliceKind::Before | SpliceKind::After) {
            return Err(invalid(format!("`{at}.content` is empty, so nothing would be inserted; specify the text")));
        }
        let (meant, change) = match (&operation.section, operation.start_line, operation.end_line) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                return Err(invalid(format!("`{at}` has both a `section` and line numbers; use only one of them")));
            }
            (Some(wanted), None, None) => self.section_change(wanted, kind, &content, &at)?,
            (None, Some(start), end) => self.lines_change(start, end.unwrap_or(start), kind, content, &at)?,
            (None, None, _) => {
                return Err(invalid(format!("`{at}` has no position; set `section`, or `startLine` and `endLine`")));
            }
        };
        self.is_expected(operation, &meant, restorer, &at)?;
        self.keep_whole(operation, &meant, &at)?;
        Ok(splice::Change { index, ..change })
    }

    fn lines_change(
        &self,
        start: u64,
        end: u64,
        kind: SpliceKind,
        content: String,
        at: &str,
    ) -> Result<(LineSpan, splice::Change), ToolError> {
        let count = self.lines().len() as u64;
        if start == 0 || end < start {
            return Err(invalid(format!(
                "`{at}`: lines {start} to {end} are not a valid range; `startLine` must be at least 1 and `endLine` not before it"
            )));
        }
        // An empty file can be filled, and text can be appended after the last line.
        let behind = matches!(kind, SpliceKind::Before) && start == end && start == count + 1;
        if end > count && !behind {
            let lines = format_count(count, "line", "lines");
            return Err(invalid(format!(
                "`{at}`: `{}` has {lines}, so line {end} does not exist; nothing was changed. Read it again",
                self.target.given
            )));
        }
        let meant = LineSpan { first: start as usize - 1, end: if behind { start as usize - 1 } else { end as usize } };
        let span = match kind {
            SpliceKind::Replace | SpliceKind::Delete => meant,
            SpliceKind::Before => LineSpan { first: meant.first, end: meant.first },
            SpliceKind::After => LineSpan { first: meant.end, end: meant.end },
        };
        Ok((meant, splice::Change { index: 0, span, content }))
    }

    fn section_change(
        &self,
        wanted: &str,
        kind: SpliceKind,
        content: &str,
        at: &str,
    ) -> Result<(LineSpan, splice::Change), ToolError> {
        let argument = format!("{at}.section");
        let found = section::find(&self.outline, wanted, &argument)?;
        if !self.outline.is_patchable {
            return Err(invalid(format!(
                "`{argument}`: a section of a {} file cannot be changed by name; use `startLine` and `endLine` (TextInspect \
                 lists them), or EditFile",
                self.outline.kind
            )));
        }
        let part = &self.outline.parts[found];
        let meant = LineSpan { first: part.first - 1, end: part.last };
        let (span, content) = splice::in_section(&self.lines(), part, kind, content, self.outline.kind == "Markdown");
        Ok((meant, splice::Change { index: 0, span, content }))
    }

    /// Checks that the current content is what the model expects.
    fn is_expected(&self, operation: &Operation, meant: &LineSpan, restorer: &Restorer, at: &str) -> Result<(), ToolError> {
        let Some(expected) = &operation.expected else { return Ok(()) };
        let expected = with_lf(&restore_secrets(restorer, expected, &format!("`{at}.expected`"), self.target)?);
        let there = self.lines()[meant.first..meant.end].concat();
        if there.trim_end_matches('\n') == expected.trim_end_matches('\n') {
            return Ok(());
        }
        let shown = self.settings.redactor.redact(&there).text.into_owned();
        let (lines, more) = (shown.lines().take(8).collect::<Vec<_>>().join("\n"), shown.lines().count() > 8);
        Err(invalid(format!(
            "`{at}.expected` does not match lines {} to {} of `{}`; nothing was changed. These lines are now:\n{lines}{}",
            meant.first + 1,
            meant.end,
            self.target.given,
            if more { "\n…" } else { "" }
        )))
    }

    /// Protects secrets that span several lines. Each of them was shown as a single line, so later line numbers may be
    /// wrong, and parts of the secret were never shown.
    fn keep_whole(&self, operation: &Operation, meant: &LineSpan, at: &str) -> Result<(), ToolError> {
        for (first, last) in redacted_lines::blocks(self.plain, &self.settings.redactor, &self.starts) {
            let (start, end) = (meant.first + 1, meant.end);
            let cuts = start <= last && first <= end && (first < start || last > end);
            if cuts {
                return Err(invalid(format!(
                    "`{at}`: lines {start} to {end} of `{}` cut through a redacted secret that spans several lines; choose \
                     lines around it, or ask the user to make this change",
                    self.target.given
                )));
            }
            if operation.start_line.is_some() && operation.expected.is_none() && last < start {
                return Err(invalid(format!(
                    "`{at}`: line {first} of `{}` hides {} redacted lines that ReadFile shows as one, so {start} may be the \
                     wrong line; also set `expected`, or use the line numbers of TextInspect",
                    self.target.given,
                    last - first + 1
                )));
            }
        }
        Ok(())
    }
}

fn kind(given: &str, at: &str) -> Result<SpliceKind, ToolError> {
    match given.to_ascii_lowercase().replace(['_', '-', ' '], "").as_str() {
        "replace" | "update" | "set" => Ok(SpliceKind::Replace),
        "delete" | "remove" => Ok(SpliceKind::Delete),
        "insertbefore" | "before" | "prepend" => Ok(SpliceKind::Before),
        "insertafter" | "after" | "append" => Ok(SpliceKind::After),
        _ => Err(invalid(format!(
            "`{at}.operation` is `{given}`; it must be `replace`, `delete`, `insertBefore` or `insertAfter`"
        ))),
    }
}
