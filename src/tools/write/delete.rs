//! The `Delete` tool, which deletes a file, a symlink, or a directory with its content.

use super::file_change::removal;
use super::git_guard::guard;
use super::tree_change::{InspectedPath, check_exists, failure_reason, inspect, target_for_refused, text_for_servers};
use crate::ports::{BoxFuture, ProposedText, RunContext};
use crate::protocol::{Action, FileDiff, PathState, Place, PlaceChange, Proposal, Target, ToolError};
use crate::sys::file::tree::{Form, Survey, remove};
use crate::sys::path::read_link;
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::crash_outcome;
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{Paths, display_path_one_line};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::tools) struct Delete;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    /// For a symlink, the link itself is deleted, unless the path ends in a slash.
    path: String,
    /// Required for a directory.
    recursive: Option<bool>,
    /// Whether the call came through an alias that never deletes directories.
    #[serde(skip)]
    files_only: bool,
}

/// Arguments of `DeleteFile`, which cannot delete directories.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OneFile {
    /// A file. For a symlink, the link itself is deleted.
    path: String,
}

impl From<OneFile> for Arguments {
    fn from(OneFile { path }: OneFile) -> Self {
        Self { path, recursive: None, files_only: true }
    }
}

pub(in crate::tools) struct Work {
    target: Target,
    planned: Survey,
    /// Text of the file, if a language server handles it.
    text: Option<String>,
    done: String,
}

impl Tool for Delete {
    const NAME: &'static str = "Delete";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::new::<OneFile>("DeleteFile"),
        Alias::new::<OneFile>("TextDelete"),
        Alias::with_same_arguments("delete_file"),
        Alias::with_same_arguments("remove"),
        Alias::with_same_arguments("remove_file"),
        Alias::with_same_arguments("rm"),
        Alias::with_same_arguments("unlink"),
        Alias::with_same_arguments("rmdir"),
        Alias::with_same_arguments("delete_path"),
        Alias::with_same_arguments("delete_directory"),
        Alias::with_same_arguments("trash"),
    ];
    const CAPABILITY: &'static str = "File.Delete";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/Delete.md");
    type Arguments = Arguments;
    type Work = Option<Work>;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Delete { target: paths.entry("path", &arguments.path)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Option<Work>>, ToolError> {
        let target = Paths::on_disk(settings).entry("path", &arguments.path)?;
        let name = display_path_one_line(&target.real, settings);
        let action = Action::Delete { target: target.clone() };
        if !(settings.paths.may_delete)(&target.real) {
            return Ok(CallDraft::for_denial(format!("Delete {}", target.given), vec![action]));
        }
        check_exists(&target, settings)?;
        guard(&target)?;
        if target.place == Place::Directory && arguments.files_only {
            let message =
                format!("`{}` is a directory, and DeleteFile deletes only files; use Delete with `recursive`", target.given);
            return Err(invalid(message));
        }
        if target.place == Place::Directory && arguments.recursive != Some(true) {
            let message = format!("`{}` is a directory; set `recursive` to delete it with everything in it", target.given);
            return Err(invalid(message));
        }
        let look = inspect(&target, &[&target.real], settings, &*settings.paths.may_delete)?;
        if let Some(path) = &look.refused {
            let refused = Action::Delete { target: target_for_refused(path, settings) };
            return Ok(CallDraft::for_denial(format!("Delete {name}"), vec![action, refused]));
        }
        let proposal = proposal(&target, &look, &name, settings);
        let opened = look.opened.iter().map(|path| Action::Delete { target: target_for_refused(path, settings) });
        let actions = std::iter::once(action).chain(opened).collect();
        let done = format!("Deleted {name} ({})", look.size());
        let text = text_for_servers(&target, &look.survey, &[&target.real], settings);
        Ok(CallDraft::changes(actions, proposal, Some(Work { target, planned: look.survey, text, done })))
    }

    fn planned_changes(work: &Option<Work>) -> Vec<PlaceChange> {
        let gone = |work: &Work| PlaceChange {
            path: work.target.real.clone(),
            before: crash_outcome::entry(&work.planned),
            after: Some(PathState::Nothing),
        };
        work.iter().map(gone).collect()
    }

    fn proposed_texts(work: &Option<Work>) -> Vec<ProposedText> {
        let gone = |work: &Work| {
            let before = Some(work.text.clone()?);
            Some(ProposedText { path: work.target.real.clone(), before, after: None })
        };
        work.iter().filter_map(gone).collect()
    }

    fn run(work: Option<Work>, _: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || {
            let work = work.ok_or_else(crate::tools::error::stale_denial)?;
            remove(&work.target.real, &work.planned).map_err(|error| failure_reason(&work.target, error))?;
            Ok(work.done)
        })
    }
}

fn proposal(target: &Target, look: &InspectedPath, name: &str, settings: &ToolSettings) -> Proposal {
    let plain = Proposal {
        summary: format!("Delete {name} ({})", look.size()),
        paths: vec![target.real.clone()],
        bytes: look.survey.bytes,
        notes: look.notes(),
        ..Proposal::default()
    };
    match look.survey.form {
        Form::Directory => Proposal { summary: format!("Delete {name}/ with {}", look.size()), ..plain },
        Form::Link => {
            let says = read_link(&target.real).map_or_else(|_| "?".to_owned(), |says| says.display().to_string());
            Proposal { notes: vec![format!("a symlink to `{says}`, which is not deleted")], ..plain }
        }
        Form::File | Form::Special => match removal(target, settings) {
            Some((hunks, lines)) => {
                let diff = FileDiff::new(&format!("a/{name}"), "/dev/null", hunks).into();
                Proposal { summary: format!("Delete {name} −{lines}"), diff, ..plain }
            }
            None => plain,
        },
    }
}
