//! Layers whose effects are undecided. They outlive the process that created them, are shown again, and are limited in
//! size.

use super::ended_run::{EndedRun, RunEffects};
use super::layer_end::is_current_digest;
use super::overlay_dir::{OverlayDir, previews};
use super::run::{PreviewRunResult, PreviewedCommand, are_many};
use crate::protocol::{CallId, ErrorCode, SessionId, ToolError};
use crate::sys::overlay::{self, Changes};
use crate::tools::sandbox::bytes_below;
use crate::tools::settings::ToolSettings;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use std::{fs, io};

/// A layer that an earlier process created and whose effects, which belong to the resumed session, are undecided.
#[derive(Debug)]
pub(in crate::tools) struct UndecidedLayer {
    pub(super) tool_call_id: CallId,
    pub(super) view: OverlayDir,
}

impl UndecidedLayer {
    pub(in crate::tools) fn is_of(&self, call: &CallId) -> bool {
        self.tool_call_id == *call
    }

    /// Makes the layer be removed on drop.
    pub(in crate::tools) fn remove_on_drop(&mut self) {
        self.view.remove_on_drop();
    }
}

/// Disk usage of an undecided layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UndecidedUse {
    pub session: SessionId,
    pub bytes: u64,
    ended: SystemTime,
    path: PathBuf,
}

/// Reads the effects of a layer again. If their digest is no longer `was`, removes the layer and returns an error.
pub(in crate::tools) fn reopen(
    layer: UndecidedLayer,
    was: &str,
    settings: &Arc<ToolSettings>,
) -> Result<PreviewRunResult, ToolError> {
    let mut view = layer.view;
    view.remove_on_drop();
    let other = |why: &str| ToolError::new(ErrorCode::Conflict, why);
    if !is_current_digest(was) {
        return Err(other("the command ran in another version of aye"));
    }
    let ended: EndedRun<'_> = view.ended_run().ok_or_else(|| other("the record of the run cannot be read"))?;
    if !ended.layers.iter().all(|layer| settings.command.sandbox.paths.roots.contains(&layer.directory)) {
        return Err(other("the command ran in different directories than this session uses now"));
    }
    if !ended.layers.iter().all(|layer| view.contains(layer)) {
        return Err(other("the record of the run names files outside its layer"));
    }
    let found: io::Result<Vec<_>> = ended.layers.iter().map(|layered| overlay::changes(layered, ended.began)).collect();
    let mut changes = found.map_err(|error| other(&format!("the changes cannot be read: {error}")))?;
    if ended.is_settled {
        changes.iter_mut().for_each(Changes::mark_settled);
    }
    let RunEffects { effects, proposal, parts, listed, build, end } = ended.end.clone().effects(&mut changes, settings);
    if effects.digest != was || effects != *ended.effects {
        return Err(other("the changes, or the files that they replace, have changed since"));
    }
    view.outlives(settings.session.commands.clone());
    if are_many(&changes) {
        view.release_memory_on_drop();
    }
    let unlisted = effects.unlisted_reason();
    let kept = PreviewedCommand {
        view,
        changes,
        result: ended.result,
        unlisted,
        listed,
        build,
        ended_at: ended.ended_at.unwrap_or(ended.began),
        run_end: ended.end,
        layers: ended.layers,
        began: ended.began,
        settings: Arc::clone(settings),
        plan_notes: Vec::new(),
    };
    Ok(PreviewRunResult { kept, effects, proposal, parts, end })
}

/// Measures the undecided layers of all sessions that are below these directories.
pub(crate) fn undecided_use(bases: &[PathBuf]) -> Vec<UndecidedUse> {
    let entries = bases.iter().filter_map(|base| fs::read_dir(previews(base)).ok()).flatten().flatten();
    let measured = entries.filter_map(|entry| {
        let path = entry.path();
        let (session, ended) = OverlayDir::undecided_session(&path)?;
        Some(UndecidedUse { session, bytes: bytes_below(&path), ended, path })
    });
    measured.collect()
}

/// Removes undecided layers that are not in use, those whose runs ended first before the others, until the remaining
/// ones fit the budget. With `dry_run`, nothing is removed. Returns the number of bytes freed.
pub(crate) fn prune_undecided(bases: &[PathBuf], budget_bytes: u64, dry_run: bool) -> u64 {
    let mut all = undecided_use(bases);
    all.sort_by_key(|one| one.ended);
    let mut left: u64 = all.iter().map(|one| one.bytes).sum();
    let mut freed = 0;
    for one in all {
        if left <= budget_bytes {
            break;
        }
        if dry_run || remove(&one) {
            left -= one.bytes;
            freed += one.bytes;
        }
    }
    freed
}

/// Removes the undecided layers of a session that has been deleted.
pub(crate) fn forget_undecided(bases: &[PathBuf], session: &SessionId) {
    undecided_use(bases).iter().filter(|one| one.session == *session).for_each(|one| {
        remove(one);
    });
}

/// Removes a layer unless a process is using it. Returns whether it was removed.
fn remove(one: &UndecidedUse) -> bool {
    match OverlayDir::open_abandoned(&one.path) {
        Ok(Some(mut view)) => {
            view.remove_on_drop();
            true
        }
        Ok(None) => false,
        Err(error) => {
            tracing::warn!(%error, path = %one.path.display(), "cannot remove a layer");
            false
        }
    }
}
