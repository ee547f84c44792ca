//! The `Move` tool, which moves or renames a file, a symlink or a directory.

use super::git_guard::{guard, with_guard};
use super::tree_change::{check_exists, check_free, failure_reason, inspect, target_for_refused, text_for_servers};
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, FileDiff, PathState, PlaceChange, Proposal, Target, ToolError};
use crate::sys::file::tree::{Form, Survey, relocate};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::crash_outcome;
use crate::tools::draft::CallDraft;
use crate::tools::paths::{ExpectedKind, Paths, display_path_one_line};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

pub(in crate::tools) struct Move;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// For a symlink, the link itself is moved, unless the path ends in a slash.
    source: String,
    /// The new path, including the name. It must not exist.
    destination: String,
}

pub(in crate::tools) struct Work {
    source: Target,
    destination: Target,
    planned: Survey,
    /// Text of the file, if a language server handles it.
    text: Option<String>,
    done: String,
}

impl Tool for Move {
    const NAME: &'static str = "Move";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("move_file"),
        Alias::with_same_arguments("mv"),
        Alias::with_same_arguments("rename"),
        Alias::with_same_arguments("rename_file"),
        Alias::with_same_arguments("move_path"),
        Alias::with_same_arguments("rename_path"),
    ];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Move.md");
    type Arguments = Arguments;
    type Work = Option<Work>;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let source = paths.entry("source", &arguments.source)?;
        let destination = paths.target("destination", &arguments.destination, ExpectedKind::Directory)?;
        Ok(actions(&source, &destination, &*paths.settings.paths.may_read))
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Option<Work>>, ToolError> {
        let paths = Paths::on_disk(settings);
        let source = paths.entry("source", &arguments.source)?;
        let destination = paths.target("destination", &arguments.destination, ExpectedKind::Directory)?;
        let actions = actions(&source, &destination, &*settings.paths.may_read);
        let (may_read, may_write, may_delete) = (&settings.paths.may_read, &settings.paths.may_write, &settings.paths.may_delete);
        let there = |path: &Path| destination.real.join(path.strip_prefix(&source.real).unwrap_or(Path::new("")));
        let may_leave = |path: &Path| may_write(path) && may_delete(path) && (may_read(path) || !may_read(&there(path)));
        if !may_write(&destination.real) || !may_leave(&source.real) {
            return Ok(CallDraft::for_denial(format!("Move {} to {}", source.given, destination.given), actions));
        }
        check_exists(&source, settings)?;
        check_free(&source, &destination)?;
        guard(&source)?;
        guard(&destination)?;
        let ends = [source.real.as_path(), destination.real.as_path()];
        let look = inspect(&source, &ends, settings, &|path| may_leave(path) && may_write(&there(path)))?;
        let (from, to) = (display_path_one_line(&source.real, settings), display_path_one_line(&destination.real, settings));
        let summary = format!("Move {from} to {to}");
        if let Some(path) = &look.refused {
            let refused = target_for_refused(path, settings);
            let there = target_for_refused(&there(path), settings);
            let more = [
                Action::Read { target: refused.clone() },
                Action::Delete { target: refused.clone() },
                Action::Write { target: refused },
                Action::Write { target: there },
            ];
            return Ok(CallDraft::for_denial(summary, actions.into_iter().chain(more).collect()));
        }
        let opened = look.opened.iter().map(|path| Action::Write { target: target_for_refused(path, settings) });
        let actions = actions.into_iter().chain(opened).collect();
        let mut notes = look.notes();
        if look.survey.form == Form::Link {
            notes.push("moves the symlink itself; a relative target may resolve differently at the new location".to_owned());
        }
        let proposal = Proposal {
            summary: format!("{summary} ({})", look.size()),
            diff: FileDiff::with_title(&from, &to).with_similarity(100).renamed(&from, &to).into(),
            paths: vec![source.real.clone(), destination.real.clone()],
            bytes: look.survey.bytes,
            notes,
            ..Proposal::default()
        };
        let done = format!("Moved {from} to {to}");
        let text = text_for_servers(&source, &look.survey, &ends, settings);
        Ok(CallDraft::changes(actions, proposal, Some(Work { source, destination, planned: look.survey, text, done })))
    }

    fn planned_changes(work: &Option<Work>) -> Vec<PlaceChange> {
        let Some(work) = work else { return Vec::new() };
        let tree = crash_outcome::entry(&work.planned);
        vec![
            PlaceChange { path: work.source.real.clone(), before: tree.clone(), after: Some(PathState::Nothing) },
            PlaceChange { path: work.destination.real.clone(), before: PathState::Nothing, after: Some(tree) },
        ]
    }

    fn proposed_texts(work: &Option<Work>) -> Vec<ProposedText> {
        let Some((work, text)) = work.as_ref().and_then(|work| Some((work, work.text.clone()?))) else { return Vec::new() };
        vec![
            ProposedText { path: work.source.real.clone(), before: Some(text.clone()), after: None },
            ProposedText { path: work.destination.real.clone(), before: None, after: Some(text) },
        ]
    }

    fn run(work: Option<Work>, _: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || {
            let work = work.ok_or_else(crate::tools::error::stale_denial)?;
            let stop = || context.kill.is_cancelled();
            let places = [&work.source, &work.destination].map(|target| (target.real.as_path(), target.given.as_str()));
            with_guard(&places, || {
                relocate(&work.source.real, &work.destination.real, &work.planned, &stop)
                    .map_err(|error| failure_reason(&work.source, error))
            })?;
            Ok(work.done)
        })
    }
}

/// Returns the actions: a write at either end, a delete at the source and, if an unreadable source would become
/// readable, a read.
pub(in crate::tools) fn actions(source: &Target, destination: &Target, may_read: &dyn Fn(&Path) -> bool) -> Vec<Action> {
    let mut actions = vec![
        Action::Write { target: destination.clone() },
        Action::Write { target: source.clone() },
        Action::Delete { target: source.clone() },
    ];
    if may_read(&destination.real) && !may_read(&source.real) {
        actions.push(Action::Read { target: source.clone() });
    }
    actions
}
