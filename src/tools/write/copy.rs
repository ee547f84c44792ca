//! The `Copy` tool, which copies a file or a directory tree.

use super::git_guard::{guard, with_guard};
use super::tree_change::{check_exists, check_free, failure_reason, inspect, target_for_refused, text_for_servers};
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, PathState, PlaceChange, Proposal, Target, ToolError};
use crate::sys::file::tree::{Form, Survey, duplicate};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::crash_outcome;
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, display_path_one_line};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;

pub(in crate::tools) struct Copy;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// A symlink is followed; its target is copied.
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

impl Tool for Copy {
    const NAME: &'static str = "Copy";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("copy_file"),
        Alias::with_same_arguments("cp"),
        Alias::with_same_arguments("copy_path"),
        Alias::with_same_arguments("copy_directory"),
        Alias::with_same_arguments("duplicate"),
    ];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Copy.md");
    type Arguments = Arguments;
    type Work = Option<Work>;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        let source = paths.target("source", &arguments.source, ExpectedKind::File)?;
        let destination = paths.target("destination", &arguments.destination, ExpectedKind::Directory)?;
        Ok(actions(&source, &destination))
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Option<Work>>, ToolError> {
        let paths = Paths::on_disk(settings);
        let source = paths.target("source", &arguments.source, ExpectedKind::Directory)?;
        let destination = paths.target("destination", &arguments.destination, ExpectedKind::Directory)?;
        let actions = actions(&source, &destination);
        let (may_read, may_write) = (&settings.paths.may_read, &settings.paths.may_write);
        if !may_read(&source.real) || !may_write(&destination.real) {
            return Ok(CallDraft::for_denial(format!("Copy {} to {}", source.given, destination.given), actions));
        }
        check_exists(&source, settings)?;
        check_free(&source, &destination)?;
        guard(&destination)?;
        let there = |path: &Path| destination.real.join(path.strip_prefix(&source.real).unwrap_or(Path::new("")));
        let look = inspect(&source, &[&destination.real], settings, &|path| may_read(path) && may_write(&there(path)))?;
        let (from, to) = (display_path_one_line(&source.real, settings), display_path_one_line(&destination.real, settings));
        let summary = format!("Copy {from} to {to}");
        if let Some(path) = &look.refused {
            let more = [
                Action::Read { target: target_for_refused(path, settings) },
                Action::Write { target: target_for_refused(&there(path), settings) },
            ];
            return Ok(CallDraft::for_denial(summary, actions.into_iter().chain(more).collect()));
        }
        if let Some(special) = &look.survey.special {
            let message =
                format!("`{}` is a device, FIFO or socket, which cannot be copied", display_path_one_line(special, settings));
            return Err(invalid(message));
        }
        let opened = look.opened.iter().map(|path| Action::Write { target: target_for_refused(path, settings) });
        let actions = actions.into_iter().chain(opened).collect();
        let mut notes = look.notes();
        if look.survey.links > 0 && look.survey.form == Form::Directory {
            notes.push("symlinks are copied as symlinks, without their targets".to_owned());
        }
        let proposal = Proposal {
            summary: format!("{summary} ({})", look.size()),
            paths: vec![destination.real.clone()],
            bytes: look.survey.bytes,
            notes,
            ..Proposal::default()
        };
        let done = format!("Copied {from} to {to} ({})", look.size());
        let text = text_for_servers(&source, &look.survey, &[&destination.real], settings);
        Ok(CallDraft::changes(actions, proposal, Some(Work { source, destination, planned: look.survey, text, done })))
    }

    fn planned_changes(work: &Option<Work>) -> Vec<PlaceChange> {
        let made = |work: &Work| PlaceChange {
            path: work.destination.real.clone(),
            before: PathState::Nothing,
            after: Some(crash_outcome::entry(&work.planned)),
        };
        work.iter().map(made).collect()
    }

    fn proposed_texts(work: &Option<Work>) -> Vec<ProposedText> {
        let made = |work: &Work| {
            let after = Some(work.text.clone()?);
            Some(ProposedText { path: work.destination.real.clone(), before: None, after })
        };
        work.iter().filter_map(made).collect()
    }

    fn run(work: Option<Work>, _: Arc<ToolSettings>, context: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || {
            let work = work.ok_or_else(crate::tools::error::stale_denial)?;
            let stop = || context.kill.is_cancelled();
            with_guard(&[(&work.destination.real, &work.destination.given)], || {
                duplicate(&work.source.real, &work.destination.real, &work.planned, &stop)
                    .map_err(|error| failure_reason(&work.source, error))
            })?;
            Ok(work.done)
        })
    }
}

fn actions(source: &Target, destination: &Target) -> Vec<Action> {
    vec![Action::Write { target: destination.clone() }, Action::Read { target: source.clone() }]
}
