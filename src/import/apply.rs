//! Files of a plan, each written atomically.

use super::plan::{FileRewrite, ImportPlan, Targets};
use crate::config::{ConfigError, grants};
use crate::host::error::CliError;
use crate::host::policy_templates;
use crate::protocol::Problem;
use std::path::{Path, PathBuf};

/// File that was written, and the backup of its old text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenFile {
    pub path: PathBuf,
    pub shown: String,
    pub backup: Option<PathBuf>,
}

/// Writes all files of a plan. Calls `each` for each file that was written.
///
/// # Errors
/// Returns an error at the first file that cannot be written. Earlier files are written, and running the import again
/// completes it.
pub(crate) fn write(
    plan: &ImportPlan,
    targets: &Targets,
    config: &Path,
    workspace: &Path,
    mut each: impl FnMut(WrittenFile),
) -> Result<(), CliError> {
    let _only_one = grants::lock(config)?;
    for file in &plan.files {
        let backup = if file.is_in_project { create_in_project(file, workspace)? } else { replace(file)? };
        if file.path == targets.project_policy
            && let Err(error) = grants::note_directory(&file.path, workspace)
        {
            tracing::warn!(%error, "cannot save the directory of a project's rules");
        }
        each(WrittenFile { path: file.path.clone(), shown: file.shown.clone(), backup });
    }
    Ok(())
}

/// Replaces one of the user's files, unless it changed since the plan was made.
fn replace(file: &FileRewrite) -> Result<Option<PathBuf>, CliError> {
    let cannot =
        |error: std::io::Error| CliError::failed(Problem::new(format!("cannot back up `{}`", file.shown)).because(error));
    let backup = match &file.old {
        Some(old) => Some(policy_templates::keep(&file.path, old.as_bytes(), true).map_err(cannot)?),
        None => None,
    };
    grants::change(&file.path, |now| {
        if now == file.old.as_deref() {
            return Ok((file.new.clone(), ()));
        }
        let problem = Problem::new(format!("`{}` changed after the plan was made, and was not written", file.shown));
        Err(ConfigError::single(problem.hint("run the import again")))
    })?;
    Ok(backup)
}

/// Creates a file in the project. Symlinks in the project must not point outside it.
fn create_in_project(file: &FileRewrite, workspace: &Path) -> Result<Option<PathBuf>, CliError> {
    let given = file.path.to_str().unwrap_or_default();
    let is_direct = crate::sys::path::resolve(given, workspace, None).is_ok_and(|found| found.real == file.path);
    let Some(directory) = file.path.parent().filter(|_| is_direct) else {
        return Err(CliError::usage(format!("`{}` goes through a symlink; nothing is written there", file.shown)));
    };
    policy_templates::write(directory, &file.path, &file.new, false, false)
}
