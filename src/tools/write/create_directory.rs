//! The `CreateDirectory` tool, which creates a directory along with its missing parents.

use super::git_guard::{guard, with_guard};
use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, PathState, Place, PlaceChange, Proposal, Target, ToolError};
use crate::sys::file::{WriteError, create_directory};
use crate::tools::alias::Alias;
use crate::tools::call_result::{CallResult, blocking};
use crate::tools::draft::CallDraft;
use crate::tools::error::invalid;
use crate::tools::paths::{ExpectedKind, Paths, display_path_one_line, open_error};
use crate::tools::settings::ToolSettings;
use crate::tools::tool::Tool;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(in crate::tools) struct CreateDirectory;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct Arguments {
    path: String,
}

pub(in crate::tools) struct Work {
    target: Target,
    name: String,
}

impl Tool for CreateDirectory {
    const NAME: &'static str = "CreateDirectory";
    const ALIASES: &'static [Alias<Arguments>] = &[
        Alias::with_same_arguments("create_directory"),
        Alias::with_same_arguments("mkdir"),
        Alias::with_same_arguments("make_directory"),
        Alias::with_same_arguments("create_folder"),
        Alias::with_same_arguments("create_dir"),
    ];
    const CAPABILITY: &'static str = "File.Write";
    const DESCRIPTION: &'static str = include_str!("../../../assets/tools/CreateDirectory.md");
    type Arguments = Arguments;
    type Work = Work;

    fn actions(arguments: &Arguments, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
        Ok(vec![Action::Write { target: paths.target("path", &arguments.path, ExpectedKind::Directory)? }])
    }

    fn draft(arguments: Arguments, settings: &ToolSettings) -> Result<CallDraft<Work>, ToolError> {
        let target = Paths::on_disk(settings).target("path", &arguments.path, ExpectedKind::Directory)?;
        guard(&target)?;
        match target.place {
            Place::Missing | Place::Directory => {}
            Place::File { .. } | Place::Special => {
                return Err(invalid(format!("`{}` exists and is not a directory; choose another `path`", target.given)));
            }
        }
        let name = display_path_one_line(&target.real, settings);
        let there = target.place == Place::Directory;
        let notes = if there { vec!["already exists; nothing changes".to_owned()] } else { Vec::new() };
        let paths = if there { Vec::new() } else { vec![target.real.clone()] };
        let summary = format!("Create the directory {name}");
        Ok(CallDraft::changes(
            vec![Action::Write { target: target.clone() }],
            Proposal { summary, paths, notes, ..Proposal::default() },
            Work { target, name },
        ))
    }

    fn planned_changes(work: &Work) -> Vec<PlaceChange> {
        let before = if work.target.place == Place::Directory { PathState::Directory } else { PathState::Nothing };
        vec![PlaceChange { path: work.target.real.clone(), before, after: Some(PathState::Directory) }]
    }

    fn run(work: Work, _: Arc<ToolSettings>, _: RunContext) -> BoxFuture<'static, CallResult> {
        blocking(move || {
            with_guard(&[(&work.target.real, &work.target.given)], || match create_directory(&work.target.real) {
                Ok(true) => Ok(format!("Created the directory {}", work.name)),
                Ok(false) => Ok(format!("The directory {} already exists", work.name)),
                Err(error) => Err(write_error(&work.target, error).into()),
            })
        })
    }
}

fn write_error(target: &Target, error: WriteError) -> ToolError {
    match error {
        WriteError::Io(error) => open_error(target, &error),
        WriteError::Changed | WriteError::NoParent(_) | WriteError::ReadOnly => {
            let message = format!(
                "`{}` now resolves to a different path than when the call was checked, so nothing was created; try again",
                target.given
            );
            ToolError::new(ErrorCode::Conflict, message)
        }
    }
}
