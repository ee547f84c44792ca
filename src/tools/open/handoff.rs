//! Opens paths on the desktop. A path is checked when the call is planned, and again before it is opened.

use crate::ports::{BoxFuture, RunContext};
use crate::protocol::{Action, ErrorCode, Place, Proposal, Target, ToolError};
use crate::sys::file::FileStamp;
use crate::sys::opener::{Desktop, OpenError, OpenerResult, Opening};
use crate::sys::path::{DirectoryIdentity, identity};
use crate::tools::call_result::{CallResult, ToolOutput};
use crate::tools::draft::{CallDraft, CallEffect};
use crate::tools::paths::{ExpectedKind, Paths, display_path_one_line, not_found_error, special_file_error};
use crate::tools::settings::ToolSettings;
use futures_util::FutureExt;
use std::path::Path;
use std::sync::Arc;

/// Action for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools) enum OpenMode {
    Open,
    Reveal,
}

pub(in crate::tools) struct PlannedHandoff {
    way: OpenMode,
    target: Target,
    stamp: PathStamp,
}

/// Identity of an entry, which reveals whether it was replaced by another one. A directory's content may change.
#[derive(PartialEq, Eq)]
enum PathStamp {
    Nothing,
    Directory(Option<DirectoryIdentity>),
    Other(FileStamp),
}

impl PathStamp {
    fn read(path: &Path) -> Self {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Self::Directory(identity(path).ok()),
            Ok(metadata) => Self::Other(FileStamp::from_metadata(&metadata)),
            Err(_) => Self::Nothing,
        }
    }
}

pub(in crate::tools) fn actions(way: OpenMode, path: &str, paths: &Paths<'_>) -> Result<Vec<Action>, ToolError> {
    let target = paths.target("path", path, ExpectedKind::File)?;
    Ok(actions_for(way, target))
}

/// Returns the actions that the policy must allow. Revealing a file also shows its directory, so both are checked.
fn actions_for(way: OpenMode, target: Target) -> Vec<Action> {
    match (way, target.place, target.real.parent()) {
        (OpenMode::Reveal, Place::File { .. } | Place::Missing | Place::Special, Some(parent)) => {
            let directory = Target { given: target.given.clone(), real: parent.to_owned(), place: Place::Directory };
            vec![Action::Read { target }, Action::Open { target: directory }]
        }
        (OpenMode::Open | OpenMode::Reveal, _, _) => vec![Action::Open { target }],
    }
}

pub(in crate::tools) fn draft(
    way: OpenMode,
    path: &str,
    settings: &ToolSettings,
) -> Result<CallDraft<PlannedHandoff>, ToolError> {
    let target = Paths::on_disk(settings).target("path", path, ExpectedKind::File)?;
    match target.place {
        Place::Missing if path.contains("://") => {
            let message = format!("`{path}` is a URL, but only files and directories can be opened; tell the user the address");
            return Err(ToolError::new(ErrorCode::InvalidRequest, message));
        }
        Place::Missing => return Err(not_found_error(&target, settings)),
        Place::Special => return Err(special_file_error(&target)),
        Place::File { .. } | Place::Directory => {}
    }
    let shown = display_path_one_line(&target.real, settings);
    let summary = match way {
        OpenMode::Open => format!("Open {shown} with its default program"),
        OpenMode::Reveal => format!("Show {shown} in the file manager"),
    };
    let note = "outside the sandbox: the program that opens it has all your permissions".to_owned();
    Ok(CallDraft {
        proposal: Some(Proposal {
            summary: summary.clone(),
            paths: vec![target.real.clone()],
            notes: vec![note],
            ..Proposal::default()
        }),
        summary,
        actions: actions_for(way, target.clone()),
        effect: CallEffect::Changes,
        work: PlannedHandoff { way, stamp: PathStamp::read(&target.real), target },
    })
}

pub(in crate::tools) fn run(
    work: PlannedHandoff,
    settings: Arc<ToolSettings>,
    context: RunContext,
) -> BoxFuture<'static, CallResult> {
    async move {
        let PlannedHandoff { way, target, stamp } = work;
        let now = Paths::on_disk(&settings).target("path", &target.given, ExpectedKind::File)?;
        if now.real != target.real || PathStamp::read(&target.real) != stamp {
            let message = format!("`{}` changed since the call was checked, so nothing was opened; try again", target.given);
            return Err(ToolError::new(ErrorCode::Conflict, message).into());
        }
        let desktop =
            Desktop::find(&settings.workspace, &settings.command.secret_names, &|value| settings.redactor.holds_secret(value));
        let opening = match way {
            OpenMode::Reveal if target.place != Place::Directory => Opening::Reveal(target.real.clone()),
            OpenMode::Open | OpenMode::Reveal => Opening::Open(target.real.clone()),
        };
        let opened = tokio::select! {
            opened = desktop.perform(&opening) => opened,
            () = context.interrupt.cancelled() => {
                let message = "stopped by the user; the file may already have been opened";
                return Err(ToolError::new(ErrorCode::Cancelled, message).into());
            }
        };
        let given = &target.given;
        match opened {
            Ok(OpenerResult::By(program)) => Ok(ToolOutput::from(format!("Passed `{given}` to the desktop with `{program}`."))),
            Ok(OpenerResult::OnlyItsDirectory(program)) => Ok(ToolOutput::from(format!(
                "Passed the directory of `{given}` to the desktop with `{program}`; the entry itself is not selected."
            ))),
            Err(
                error @ (OpenError::NoDisplay | OpenError::NoOpener(_) | OpenError::NotStarted { .. } | OpenError::Failed { .. }),
            ) => Err(ToolError::new(ErrorCode::ToolExecutionFailed, format!("cannot open `{given}`: {error}")).into()),
        }
    }
    .boxed()
}
