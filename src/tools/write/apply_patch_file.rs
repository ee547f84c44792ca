//! ApplyPatchFile: applies a patch file if the files have not changed since it was written. Only `aye apply` offers
//! this tool.

use super::apply_patch::steps::PatchSteps;
use super::file_change::CurrentFile;
use super::git_guard::guard_all;
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, FileDiff, FileDiffs, PlaceChange, Proposal, Target, ToolError, format_count};
use crate::sys::file::PreImage;
use crate::sys::file::transaction::{ExpectedEntry, PathOperation, Step};
use crate::tools::arguments;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::diff::{LineDiff, compare, prepare_content};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::patch_file::{FilePart, FileState, PatchFile};
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
/// Maximum number of files per call. Each needs open directories while all of them change at once.
pub(crate) const FILES_PER_CALL: usize = 200;

/// The tool for one patch file.
pub(in crate::tools) struct ApplyPatchFile(Arc<PatchFile>);

/// The files of one call, in the order of the patch file.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// SHA-256 digest of the patch file.
    digest: String,
    first: usize,
}

/// Work of a planned call: the steps, and the result for the conversation.
struct Work {
    steps: PatchSteps,
    done: String,
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
            let current = CurrentContent::read(&target, settings)?;
            if current.state() == part.entry.base {
                planned.push(PlannedFile { part, target, current });
            } else {
                changed.push(format!("`{}`", part.entry.path));
            }
        }
        if !changed.is_empty() {
            let message =
                format!("{} changed since the patch file was written; nothing was changed", join_names(changed.into_iter()));
            return Err(ToolError::new(ErrorCode::Conflict, message));
        }
        draft(&planned, settings)
    }
}

/// A file of the patch with its state on disk.
struct PlannedFile<'a> {
    part: FilePart<'a>,
    target: Target,
    current: CurrentContent,
}

/// Content and mode of a path; `None` if the path does not exist.
struct CurrentContent(Option<(Vec<u8>, bool)>);

impl CurrentContent {
    fn read(target: &Target, settings: &ToolSettings) -> Result<Self, ToolError> {
        let bytes = match CurrentFile::read(target, settings)? {
            CurrentFile::Absent => return Ok(Self(None)),
            CurrentFile::Text { bytes, .. } | CurrentFile::NotText { bytes, .. } => bytes,
        };
        let mode = target.real.symlink_metadata().map_or(0, |metadata| metadata.permissions().mode());
        Ok(Self(Some((bytes, mode & 0o100 != 0))))
    }

    fn state(&self) -> Option<FileState> {
        self.0.as_ref().map(|(bytes, is_executable)| FileState::new(bytes, *is_executable))
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |(bytes, _)| bytes)
    }

    fn image(&self) -> PreImage {
        self.0.as_ref().map_or(PreImage::Absent, |(bytes, _)| PreImage::hash(bytes))
    }
}

/// Returns the target of a file. No symlink may redirect it.
fn target(part: FilePart<'_>, paths: &Paths<'_>) -> Result<Target, ToolError> {
    let path = &part.entry.path;
    let target = paths.target("path", path, ExpectedKind::File)?;
    if target.real != paths.settings.workspace.join(path) {
        let message = format!("`{path}` is, or is below, a symlink to `{}`; nothing was changed", target.real.display());
        return Err(invalid(message));
    }
    Ok(target)
}

fn action(part: FilePart<'_>, target: Target) -> Action {
    if part.entry.result.is_some() { Action::Write { target } } else { Action::Delete { target } }
}

fn draft(files: &[PlannedFile<'_>], settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
    let (mut steps, mut given, mut actions, mut diff) = (Vec::new(), Vec::new(), Vec::new(), FileDiffs::default());
    let (mut added, mut removed, mut bytes) = (0, 0, 0);
    for file in files {
        let path = &file.part.entry.path;
        let content =
            file.part.apply(file.current.bytes()).map_err(|why| invalid(format!("`{path}`: {why}; nothing was changed")))?;
        let shown = describe_change(file, &content, settings);
        added += shown.added;
        removed += shown.removed;
        diff.push(shown.diff);
        bytes += content.len() as u64;
        given.push((path.clone(), file.current.image()));
        let before = file.current.image();
        let what = match &file.part.entry.result {
            Some(result) => PathOperation::Write { content, before, like: None, executable: Some(result.is_executable()) },
            None => PathOperation::Remove { before: ExpectedEntry::Content(before) },
        };
        steps.push(Step { real: file.target.real.clone(), what });
        actions.push(action(file.part, file.target.clone()));
    }
    let written: Vec<(&Path, &str)> = files
        .iter()
        .filter(|file| file.part.entry.result.is_some())
        .map(|file| (file.target.real.as_path(), file.part.entry.path.as_str()))
        .collect();
    guard_all(&written)?;
    let names = join_names(files.iter().map(|file| file.part.entry.path.clone()));
    let summary = format!("Apply a patch to {} +{added} −{removed}: {names}", format_count(files.len() as u64, "file", "files"));
    let paths = files.iter().map(|file| file.target.real.clone()).collect();
    let done = summary.replacen("Apply a patch", "Applied a patch", 1);
    let proposal = Proposal { summary, diff, paths, bytes, ..Proposal::default() };
    Ok(CallDraft::changes(actions, proposal, Work { steps: PatchSteps { steps, given }, done }))
}

/// Diff of one file in the form shown to the user.
struct ShownChange {
    diff: FileDiff,
    added: usize,
    removed: usize,
}

/// Returns the diff between the content on disk and the content to be written, regardless of the lines of the patch
/// file.
fn describe_change(file: &PlannedFile<'_>, content: &[u8], settings: &ToolSettings) -> ShownChange {
    let name = display_path_one_line(&file.target.real, settings);
    let (base, result) = (&file.part.entry.base, &file.part.entry.result);
    let head = FileDiff::with_title(&name, &name);
    let head = match (base, result) {
        (None, Some(result)) => head.created(&result.mode),
        (Some(base), None) => head.deleted(&base.mode),
        (Some(base), Some(result)) if base.mode != result.mode => head.with_modes(&base.mode, &result.mode),
        _ => head,
    };
    let Some((old, new)) = prepare_content(file.current.bytes(), settings).zip(prepare_content(content, settings)) else {
        return ShownChange { diff: head.binary(&name), added: 0, removed: 0 };
    };
    let LineDiff { hunks, added, removed, .. } = compare(&old, &new);
    let side = |is_there: bool, letter: char| if is_there { format!("{letter}/{name}") } else { "/dev/null".to_owned() };
    let diff = head.with_hunks(&side(base.is_some(), 'a'), &side(result.is_some(), 'b'), hunks);
    ShownChange { diff, added, removed }
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
        parts.into_iter().map(|part| target(part, paths).map(|target| action(part, target))).collect()
    }

    fn draft(&self, _: &str, arguments: Map<String, Value>, settings: &ToolSettings) -> Result<CallDraft<Payload>, ToolError> {
        Ok(self.plan(arguments, settings)?.map(|work| Box::new(work) as Payload))
    }

    fn planned_changes(&self, payload: &Payload) -> Vec<PlaceChange> {
        payload.downcast_ref::<Work>().map(|work| work.steps.planned_changes()).unwrap_or_default()
    }

    fn run(&self, payload: Payload, settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        let Ok(work) = payload.downcast::<Work>() else {
            let error = ToolError::new(ErrorCode::ToolExecutionFailed, "the plan belongs to another router; plan the call again");
            return futures_util::future::ready(Err(error.into())).boxed();
        };
        blocking(move || {
            work.steps.commit(&settings)?;
            Ok(work.done)
        })
    }
}
