//! Enters a task's copy of the workspace, which then becomes the workspace of this process.

use super::description::{CopyKind, TaskDescription};
use super::directory::{TaskDirectory, TaskLock, TaskUse};
use crate::config::trust::UncoveredDirectory;
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::options::{Common, WorkspaceCopy};
use crate::protocol::Problem;
use crate::sys::sandbox::{Persistence, ProcessLayer};
use std::path::Path;

/// A task's copy of the workspace that this process has entered.
pub(crate) struct EnteredCopy {
    pub description: TaskDescription,
    /// Options with which the task runs in this copy.
    pub common: Common,
    /// Lock that prevents other processes from using the task until it is dropped.
    pub lock: TaskLock,
}

/// Enters a task's copy of the workspace. Must be called before the first thread starts.
///
/// # Errors
/// Returns an error if another process is using the task, if the workspace is missing, or if the system does not
/// support copy-on-write layers. The workspace is unchanged in these cases.
pub(crate) fn enter(task: &TaskDirectory, current: &Common, purpose: TaskUse) -> Result<EnteredCopy, CliError> {
    let lock = task.lock(purpose)?;
    let description = task.description()?;
    let is_layer = description.copy == CopyKind::Layer;
    let directory = match &description.copy {
        CopyKind::Layer => &description.workspace,
        CopyKind::Worktree { workspace, .. } => workspace,
    };
    let common = Common {
        directory: Some(directory.clone()),
        copy: Some(WorkspaceCopy { data: task.data(), is_layer, check: description.check.clone() }),
        ..description.options.common(current)
    };
    let app = AppContext::find(&common)?;
    // In the namespaces, the owner of the managed policy cannot be checked.
    app.policy(common.policy.as_deref(), None)?;
    if is_layer {
        if app.directories.shared.starts_with(&app.workspace) {
            return Err(no_layer(&"the data directory is inside the workspace").hint("set AYE_DATA_DIR to another directory"));
        }
        cover(&app.workspace, &task.layer())?;
    }
    Ok(EnteredCopy { description, common, lock })
}

/// Covers the workspace with the copy-on-write layer until this process exits.
fn cover(workspace: &Path, base: &Path) -> Result<(), CliError> {
    let uncovered = UncoveredDirectory::examine(workspace);
    ProcessLayer::mount_over(workspace, base, Persistence::Disk).map(drop).map_err(|why| no_layer(&why))?;
    uncovered.remember_covered();
    Ok(())
}

fn no_layer(why: &dyn std::fmt::Display) -> CliError {
    let problem = Problem::new("cannot cover the workspace with a copy-on-write layer").because(why);
    CliError::usage(problem.hint("run `aye doctor` to see what this system supports"))
        .hint("pass `--worktree` to start the task in a git worktree instead")
}
