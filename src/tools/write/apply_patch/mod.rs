//! The `ApplyPatch` tool, which changes several files with one patch: either all of them or none.

mod amendment;
mod apply;
mod choose;
mod explain;
mod find;
pub(in crate::tools) mod parse;
mod proposal;
pub(in crate::tools::write) mod steps;
#[cfg(test)]
mod tests;
mod tree;

use self::parse::{FileOperation, PatchSection, parse};
use self::steps::PatchSteps;
use self::tree::{PatchFault, PatchPath, Tree};
use super::file_change::draft_mismatch;
use super::git_guard::guard_all;
use super::move_path;
use crate::policy::redact::has_marker;
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, Amendable, Amendment, PlaceChange, Proposal, ToolError};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::diff::cuts::HunkLines;
use crate::tools::draft::CallDraft;
use crate::tools::error::{amendment_error, invalid};
use crate::tools::paths::{ExpectedKind, Paths};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use proposal::PatchProposal;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of sections, limited because all files are changed at once and each one needs open directories.
const MAX_SECTIONS: usize = 200;

pub(in crate::tools) struct ApplyPatch;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    patch: String,
}

pub(in crate::tools) enum PlannedPatch {
    Apply(PatchChanges),
    /// The patch does not match. The error reveals file content, so it may be shown only if the policy permits reading
    /// the file.
    Explain(ToolError),
}

pub(in crate::tools) struct PatchChanges {
    files: Vec<PatchPath>,
    steps: PatchSteps,
    done: String,
    /// For each part that is shown, the index of its file and its hunks.
    cuts: Vec<(usize, Vec<HunkLines>)>,
    actions: Vec<Action>,
}

impl Tool for ApplyPatch {
    const NAME: &'static str = "ApplyPatch";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("apply_patch"),
        Alias::with_same_arguments("applypatch"),
        Alias::with_same_arguments("patch"),
    ];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../../assets/tools/ApplyPatch.md");
    const RESTORES: bool = true;
    type Arguments = Arguments;
    type Work = PlannedPatch;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        actions(&sections(&arguments.patch)?, paths)
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<PlannedPatch>, ToolError> {
        let sections = sections(&arguments.patch)?;
        let paths = Paths::on_disk(settings);
        let actions = actions(&sections, &paths)?;
        let mut tree = Tree::new(&paths);
        for section in &sections {
            match tree.apply(section) {
                Ok(()) => {}
                Err(PatchFault::Plain(error)) => return Err(error),
                Err(PatchFault::Told { target, error }) => {
                    return draft_mismatch(("Patch", "the patch does not match"), target, error, settings, PlannedPatch::Explain);
                }
            }
        }
        guard_all(&tree.written_paths())?;
        let (proposal, changes) = changes(tree.files, actions, settings);
        Ok(CallDraft::changes(changes.actions.clone(), proposal, PlannedPatch::Apply(changes)))
    }

    fn planned_changes(work: &PlannedPatch) -> Vec<PlaceChange> {
        match work {
            PlannedPatch::Apply(changes) => changes.steps.planned_changes(),
            PlannedPatch::Explain(_) => Vec::new(),
        }
    }

    fn proposed_texts(work: &PlannedPatch) -> Vec<ProposedText> {
        match work {
            PlannedPatch::Apply(changes) => changes.files.iter().filter_map(PatchPath::proposed_text).collect(),
            PlannedPatch::Explain(_) => Vec::new(),
        }
    }

    fn amendable(work: &PlannedPatch, settings: &ToolSettings) -> (Amendable, Vec<String>) {
        match work {
            PlannedPatch::Apply(changes) => amendment::amendable(changes, settings),
            PlannedPatch::Explain(_) => (Amendable::default(), Vec::new()),
        }
    }

    fn amend(
        work: PlannedPatch,
        amendment: &Amendment,
        settings: &ToolSettings,
    ) -> Result<(CallDraft<PlannedPatch>, String), ToolError> {
        match work {
            PlannedPatch::Apply(changes) => amendment::amend(changes, amendment, settings),
            PlannedPatch::Explain(_) => Err(amendment_error()),
        }
    }

    fn run(work: PlannedPatch, settings: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || match work {
            PlannedPatch::Apply(changes) => {
                changes.steps.commit(&settings)?;
                Ok(changes.done)
            }
            PlannedPatch::Explain(error) => Err(error.into()),
        })
    }
}

fn changes(files: Vec<PatchPath>, actions: Vec<Action>, settings: &ToolSettings) -> (Proposal, PatchChanges) {
    let PatchProposal { proposal, done, cuts } = proposal::build_proposal(&files, settings);
    let steps = tree::steps(&files);
    (proposal, PatchChanges { files, steps, done, cuts, actions })
}

fn sections(patch: &str) -> Result<Vec<PatchSection>, ToolError> {
    let sections = parse(patch).map_err(|error| invalid(format!("{error}. Nothing was changed")))?;
    if sections.len() > MAX_SECTIONS {
        let message =
            format!("the patch has {} sections, more than {MAX_SECTIONS}; nothing was changed. Split it", sections.len());
        return Err(invalid(message));
    }
    for section in &sections {
        let moved_to = match &section.what {
            FileOperation::Update { move_to, .. } => move_to.as_deref(),
            FileOperation::Add { .. } | FileOperation::Delete => None,
        };
        if let Some(marker) = has_marker(&section.path).or_else(|| moved_to.and_then(has_marker)) {
            return Err(invalid(format!(
                "line {} of the patch: `{marker}` replaces a secret and cannot be part of a path",
                section.line
            )));
        }
    }
    Ok(sections)
}

fn actions(sections: &[PatchSection], paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
    let mut actions = Vec::new();
    for section in sections {
        let target = || paths.target("patch", &section.path, ExpectedKind::File);
        let more = match &section.what {
            FileOperation::Add { .. } | FileOperation::Update { move_to: None, .. } => vec![Action::Write { target: target()? }],
            FileOperation::Delete => vec![Action::Delete { target: paths.entry("patch", &section.path)? }],
            FileOperation::Update { move_to: Some(to), .. } => {
                let to = paths.target("patch", to, ExpectedKind::File)?;
                let may_read: &dyn Fn(&Path) -> bool = &*paths.settings.paths.may_read;
                move_path::actions(&target()?, &to, may_read)
            }
        };
        for action in more {
            if !actions.contains(&action) {
                actions.push(action);
            }
        }
    }
    Ok(actions)
}

/// Returns the text that results from each update section of a patch.
#[cfg(feature = "fuzzing")]
pub fn apply_to_text(text: &str, patch: &str) -> Result<Vec<String>, String> {
    let mut results = Vec::new();
    for section in parse(patch).map_err(|error| error.to_string())? {
        if let FileOperation::Update { hunks, .. } = section.what {
            results.push(apply::apply(text, &hunks, &[]).map_err(|misfit| format!("{misfit:?}"))?.text);
        }
    }
    Ok(results)
}
