//! The `ApplyPatchFile` tool, which applies a patch file if the files have not changed since the patch was made. Only
//! `aye apply` offers this tool.

use super::apply_patch::steps::PatchSteps;
use super::file_change::{CurrentFile, unencodable_text};
use super::git_guard::guard_all;
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{
    Action, Amendable, Amendment, ErrorCode, FileDiff, FileDiffs, PlaceChange, Proposal, Target, ToolError, format_count,
};
use crate::sys::file::transaction::{ExpectedEntry, PathOperation, Step};
use crate::tools::arguments;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::diff::cuts::HunkLines;
use crate::tools::diff::{LineDiff, compare, prepare_content};
use crate::tools::document::content::Document;
use crate::tools::draft::CallDraft;
use crate::tools::error::{amendment_error, invalid};
use crate::tools::patch_file::{FileEntry, FilePart, FileState, PatchFile, PatchReview};
use crate::tools::paths::{ExpectedKind, Paths, display_path_one_line, join_names};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::{AnyTool, Payload};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

pub(crate) const APPLY_PATCH_FILE: &str = "ApplyPatchFile";
/// Maximum number of files per call, limited because all files are changed at once and each one needs open directories.
pub(crate) const FILES_PER_CALL: usize = 200;

/// The tool that applies one particular patch file.
pub(in crate::tools) struct ApplyPatchFile(Arc<PatchFile>);

/// The files of one call, in the order of the patch file.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// SHA-256 digest of the patch file.
    digest: String,
    first: usize,
}

/// Plan of a call: the files, the steps, and the result for the conversation.
pub(super) struct Work {
    pub(super) files: Vec<PlannedFile>,
    pub(super) actions: Vec<Action>,
    steps: PatchSteps,
    done: String,
    /// The user's review, along with the record of the changes applied.
    pub(super) review: Option<PatchReview>,
}

impl ApplyPatchFile {
    pub(in crate::tools) fn new(patch: Arc<PatchFile>) -> Self {
        Self(patch)
    }

    fn parts(&self, arguments: Map<String, Value>) -> Result<Vec<FilePart<'_>>, ToolError> {
        let Arguments { digest, first } = arguments::parse(arguments)?;
        if digest != self.0.digest() {
            return Err(invalid("the call is for a different patch file; run `aye apply` again"));
        }
        let parts: Vec<_> = self.0.parts().skip(first).take(FILES_PER_CALL).collect();
        if parts.is_empty() { Err(invalid("the patch file does not contain these files")) } else { Ok(parts) }
    }

    fn plan(&self, arguments: Map<String, Value>, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let parts = self.parts(arguments)?;
        let paths = Paths::on_disk(settings);
        let mut planned = Vec::with_capacity(parts.len());
        let mut changed = Vec::new();
        for part in parts {
            let target = target(part, &paths)?;
            match PlannedFile::new(part, target, settings)? {
                Some(file) => planned.push(file),
                None => changed.push(format!("`{}`", part.entry.path)),
            }
        }
        if !changed.is_empty() {
            let message =
                format!("{} changed since the patch file was written; nothing was changed", join_names(changed.into_iter()));
            return Err(ToolError::new(ErrorCode::Conflict, message));
        }
        let actions = planned.iter().map(|file| action(file.entry.result.is_some(), file.target.clone())).collect();
        draft(planned, (actions, self.0.review().cloned()), settings)
    }
}

/// A file of the patch, with its state on disk and the resulting content.
pub(super) struct PlannedFile {
    /// States of the file as they are shown. `result` describes `content`.
    pub(super) entry: FileEntry,
    pub(super) target: Target,
    pub(super) current: CurrentFile,
    /// New content, or an empty list if the file is deleted.
    content: Vec<u8>,
    /// New content as text, provided that the text can be encoded to the same bytes again.
    pub(super) document: Option<Document>,
    /// Hunks that the file's diff consists of.
    pub(super) cuts: Vec<HunkLines>,
    /// Whether the user has edited the new text.
    pub(super) is_edited: bool,
}

impl PlannedFile {
    /// Plans the change to a file. Returns `Ok(None)` if the file is not in the state from which the patch was made.
    fn new(part: FilePart<'_>, target: Target, settings: &ToolSettings) -> Result<Option<Self>, ToolError> {
        let current = CurrentFile::read(&target, settings)?;
        if state(&current, &target) != part.entry.base {
            return Ok(None);
        }
        let path = &part.entry.path;
        let content = part.apply(bytes(&current)).map_err(|why| invalid(format!("`{path}`: {why}; nothing was changed")))?;
        let is_exact = |document: &Document| document.form.encode(&document.text).as_ref() == Some(&content);
        let document = Document::decode(&content).ok().filter(|document| part.entry.result.is_some() && is_exact(document));
        let entry = part.entry.clone();
        Ok(Some(Self { entry, target, current, content, document, cuts: Vec::new(), is_edited: false }))
    }

    /// Replaces the new content with the text that the user chose.
    pub(super) fn set_document(&mut self, document: Document) -> Result<(), ToolError> {
        let Some(content) = document.form.encode(&document.text) else {
            return Err(unencodable_text(&self.target.given, document.form, "the edited text"));
        };
        if let Some(result) = &mut self.entry.result {
            result.sha256 = FileState::digest(&content);
        }
        (self.content, self.document) = (content, Some(document));
        Ok(())
    }
}

/// Returns the content of a file, which is empty if the file does not exist.
fn bytes(current: &CurrentFile) -> &[u8] {
    match current {
        CurrentFile::Absent => &[],
        CurrentFile::Text { bytes, .. } | CurrentFile::NotText { bytes, .. } => bytes,
    }
}

/// Returns the state of a file in the form in which patch files record it, or `None` if the file does not exist.
fn state(current: &CurrentFile, target: &Target) -> Option<FileState> {
    if matches!(current, CurrentFile::Absent) {
        return None;
    }
    let mode = target.real.symlink_metadata().map_or(0, |metadata| metadata.permissions().mode());
    Some(FileState::new(bytes(current), mode & 0o100 != 0))
}

/// Returns the target of a file. Fails if a symlink would redirect it.
fn target(part: FilePart<'_>, paths: &Paths<'_>) -> Result<Target, ToolError> {
    let path = &part.entry.path;
    let target = paths.target("path", path, ExpectedKind::File)?;
    if target.real != paths.settings.workspace.join(path) {
        let message = format!("`{path}` is, or is below, a symlink to `{}`; nothing was changed", target.real.display());
        return Err(invalid(message));
    }
    Ok(target)
}

fn action(is_written: bool, target: Target) -> Action {
    if is_written { Action::Write { target } } else { Action::Delete { target } }
}

/// Drafts the call for these files. `actions` includes the actions for all files of the call, even those that the user
/// has omitted.
pub(super) fn draft(
    mut files: Vec<PlannedFile>,
    (actions, review): (Vec<Action>, Option<PatchReview>),
    settings: &ToolSettings,
) -> Result<CallDraft<Work>, ToolError> {
    let (mut steps, mut given, mut diff) = (Vec::new(), Vec::new(), FileDiffs::default());
    let (mut added, mut removed, mut bytes) = (0, 0, 0);
    let mut notes = review.as_ref().map(|review| review.notes.clone()).unwrap_or_default();
    for file in &mut files {
        let shown = describe_change(file, settings);
        added += shown.added;
        removed += shown.removed;
        bytes += file.content.len() as u64;
        file.cuts = shown.cuts;
        if review.as_ref().is_some_and(|review| review.is_required) {
            notes.extend(except_note(file, settings));
        }
        diff.push(shown.diff);
        let path = &file.entry.path;
        let before = file.current.image();
        given.push((path.clone(), before));
        let what = match &file.entry.result {
            Some(result) => PathOperation::Write {
                content: file.content.clone(),
                before,
                like: None,
                executable: Some(result.is_executable()),
            },
            None => PathOperation::Remove { before: ExpectedEntry::Content(before) },
        };
        steps.push(Step { real: file.target.real.clone(), what });
    }
    let written: Vec<(&Path, &str)> = files
        .iter()
        .filter(|file| file.entry.result.is_some())
        .map(|file| (file.target.real.as_path(), file.entry.path.as_str()))
        .collect();
    guard_all(&written)?;
    let names = join_names(files.iter().map(|file| file.entry.path.clone()));
    let summary = format!("Apply a patch to {} +{added} −{removed}: {names}", format_count(files.len() as u64, "file", "files"));
    let paths = files.iter().map(|file| file.target.real.clone()).collect();
    let done = summary.replacen("Apply a patch", "Applied a patch", 1);
    let proposal = Proposal { summary, diff, paths, bytes, notes, ..Proposal::default() };
    let work = Work { files, actions: actions.clone(), steps: PatchSteps { steps, given }, done, review };
    Ok(CallDraft::changes(actions, proposal, work))
}

/// Returns a note on a file that cannot be omitted on the screen, or `None` if it can.
fn except_note(file: &PlannedFile, settings: &ToolSettings) -> Option<String> {
    let path = &file.entry.path;
    if file.cuts.is_empty() {
        return Some(format!("`{path}` has no hunks: it can only be left out by its name, with `--except`"));
    }
    file.is_indivisible(settings).then(|| format!("`{path}` can only be applied as a whole; `--except` leaves it out"))
}

/// The diff of one file in the form that the user sees, along with its hunks.
struct ShownChange {
    diff: FileDiff,
    added: usize,
    removed: usize,
    cuts: Vec<HunkLines>,
}

/// Computes the diff between the content on disk and the content to be written, without using the lines in the patch
/// file.
fn describe_change(file: &PlannedFile, settings: &ToolSettings) -> ShownChange {
    let name = display_path_one_line(&file.target.real, settings);
    let (base, result) = (&file.entry.base, &file.entry.result);
    let head = FileDiff::with_title(&name, &name);
    let head = match (base, result) {
        (None, Some(result)) => head.created(&result.mode),
        (Some(base), None) => head.deleted(&base.mode),
        (Some(base), Some(result)) if base.mode != result.mode => head.with_modes(&base.mode, &result.mode),
        _ => head,
    };
    let sides = prepare_content(bytes(&file.current), settings).zip(prepare_content(&file.content, settings));
    let Some((old, new)) = sides else {
        return ShownChange { diff: head.binary(&name), added: 0, removed: 0, cuts: Vec::new() };
    };
    let LineDiff { hunks, added, removed, cuts } = compare(&old, &new);
    let side = |is_there: bool, letter: char| if is_there { format!("{letter}/{name}") } else { "/dev/null".to_owned() };
    let diff = head.with_hunks(&side(base.is_some(), 'a'), &side(result.is_some(), 'b'), hunks);
    ShownChange { diff, added, removed, cuts }
}

/// Returns the reason why a call that applies a patch after a review needs approval, or `None` for any other call.
pub(in crate::tools) fn review_reason(payload: &Payload) -> Option<String> {
    let work = payload.downcast_ref::<Work>()?;
    let is_required = work.review.as_ref().is_some_and(|review| review.is_required);
    is_required.then(|| "you choose which changes are applied".to_owned())
}

impl AnyTool for ApplyPatchFile {
    fn name(&self) -> &'static str {
        APPLY_PATCH_FILE
    }

    fn alias_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn capability(&self) -> &'static str {
        "File.Write"
    }

    fn description(&self) -> &'static str {
        "Applies the patch file of this session."
    }

    fn restores(&self) -> bool {
        false
    }

    fn schema(&self, _: &str) -> Value {
        arguments::schema::<Arguments>()
    }

    fn actions(&self, _: &str, arguments: Map<String, Value>, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let parts = self.parts(arguments)?;
        let planned = |part: FilePart<'_>| target(part, paths).map(|target| action(part.entry.result.is_some(), target));
        parts.into_iter().map(planned).collect()
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, settings: &ToolSettings) -> Result<CallDraft<Payload>, ToolError> {
        Ok(self.plan(arguments, settings)?.map(|work| Box::new(work) as Payload))
    }

    fn planned_changes(&self, payload: &Payload) -> Vec<PlaceChange> {
        payload.downcast_ref::<Work>().map(|work| work.steps.planned_changes()).unwrap_or_default()
    }

    fn amendable(&self, payload: &Payload, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        payload.downcast_ref::<Work>().map(|work| work.amendable(settings)).unwrap_or_default()
    }

    fn amend(
        &self,
        payload: Payload,
        amendment: &Amendment,
        settings: &ToolSettings,
    ) -> Result<(CallDraft<Payload>, String), ToolError> {
        let Ok(work) = payload.downcast::<Work>() else { return Err(amendment_error()) };
        let (draft, told) = work.amend(amendment, settings)?;
        Ok((draft.map(|work| Box::new(work) as Payload), told))
    }

    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        let Ok(work) = payload.downcast::<Work>() else {
            let error = ToolError::new(ErrorCode::ToolExecutionFailed, "the plan belongs to another router; plan the call again");
            return futures_util::future::ready(Err(error.into())).boxed();
        };
        blocking(move || {
            work.record_results()?;
            work.steps.commit(&settings)?;
            Ok(work.done)
        })
    }
}
