//! The end of a run in a view: its output and effects, for display and for storage with the layer.

use super::direct_output::DirectlyWritten;
use super::effects::{ListedEffect, ShownEffects, collect_effects};
use super::layer_end::{build_note, digest};
use super::written_bytes::written_bytes;
use crate::ports::LayerEnd;
use crate::protocol::{CallId, CountedEffects, EffectPart, Effects, Proposal, SandboxAccess, ToolResult, size};
use crate::sys::overlay::{Changes, LayeredDirectory, Time};
use crate::tools::call_result::CallResult;
use crate::tools::output::uris;
use crate::tools::settings::ToolSettings;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// Size in bytes above which copying to another file system is announced.
const ANNOUNCED_COPY_BYTES: u64 = 256 << 20;

/// The end of a run, without the changes that it made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunEnd {
    pub ended: String,
    /// Output, with secrets redacted.
    pub output: String,
    /// Access that the sandbox blocked.
    pub denied: Vec<SandboxAccess>,
    pub notes: Vec<String>,
    /// Whether something other than the command itself, such as a limit or the user, ended it.
    pub stopped: bool,
    #[serde(default)]
    pub direct: DirectlyWritten,
}

/// The effects of a run, with everything needed to decide on them.
pub(super) struct RunEffects {
    pub effects: Effects,
    pub proposal: Proposal,
    /// Parts of the effects that can be omitted.
    pub parts: Vec<EffectPart>,
    pub listed: Vec<ListedEffect>,
    /// Real directories whose changes are build output.
    pub build: Vec<PathBuf>,
    /// Assessment of a run that preceded approval.
    pub end: Option<LayerEnd>,
}

/// A run that preceded approval. It is stored in its layer until a decision on its effects has been made.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndedRun<'a> {
    pub end: RunEnd,
    /// Result for the model, with secrets redacted.
    pub result: ToolResult,
    /// Effects in the form in which they are shown to the user. They are borrowed for storing, because there may be
    /// many.
    pub effects: Cow<'a, Effects>,
    pub layers: Vec<LayeredDirectory>,
    pub began: Time,
    /// Time at which the run ended, or `None` in layers written by earlier versions.
    #[serde(default)]
    pub ended_at: Option<Time>,
    /// Whether the replaced entries did not change while the command was running.
    #[serde(default)]
    pub is_settled: bool,
}

impl RunEnd {
    /// Returns the effects and their details. Changes that are never applied are removed from `changes`.
    pub(super) fn effects(self, changes: &mut [Changes], settings: &ToolSettings) -> RunEffects {
        let ShownEffects {
            files,
            parts,
            listed,
            groups,
            more_files,
            mut refused,
            diff,
            paths,
            bytes,
            notes: seen,
            runs_code,
            build,
            rest,
        } = collect_effects(changes, settings);
        let Self { ended, output, denied, stopped, notes, direct } = self;
        let (build, mut counted): (Vec<PathBuf>, Vec<CountedEffects>) = build.into_iter().unzip();
        counted.extend(direct.counted);
        refused.extend(direct.refused);
        let notes = counted.iter().map(build_note).chain(notes).chain(seen).chain(copy_note(changes)).collect();
        let effects = Effects { ended, output, files, groups, more_files, counted, refused, denied, ..Effects::default() };
        let digest = digest(changes, &effects);
        let end = settings.command.sandbox.layered.then(|| LayerEnd { stopped, digest: digest.clone(), ..rest.finish() });
        let proposal = Proposal { diff, paths, bytes, notes, runs_code, ..Proposal::default() };
        RunEffects { effects: Effects { digest, ..effects }, proposal, parts, listed, build, end }
    }
}

/// Returns a note on a large copy, which can take a long time. Returns `None` if the changes can simply be moved to
/// their paths, or if the copy is small.
fn copy_note(changes: &[Changes]) -> Option<String> {
    let copied = changes.iter().filter(|changes| !changes.is_empty() && changes.must_be_copied());
    let bytes: u64 = copied.flat_map(Changes::entries).map(written_bytes).sum();
    (bytes > ANNOUNCED_COPY_BYTES).then(|| format!("applying the changes copies {} to another file system", size(bytes)))
}

/// Returns the result of a run in the form that the model receives.
pub(super) fn to_tool_result(output: CallResult, id: CallId, tool_name: &str) -> ToolResult {
    match output {
        Ok(told) => ToolResult {
            denied: told.denied,
            artifact_uris: uris(&told.artifacts),
            ended: told.ended,
            left_out: told.left_out,
            ..ToolResult::success(id, tool_name, told.text)
        },
        Err(failed) => ToolResult {
            output_text: failed.printed,
            denied: failed.denied,
            artifact_uris: uris(&failed.artifacts),
            ended: failed.ended,
            left_out: failed.left_out,
            ..ToolResult::from_error(id, tool_name, failed.error)
        },
    }
}
