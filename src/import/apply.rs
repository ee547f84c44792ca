//! Carrying out of an import plan. Each file is written atomically.

use super::plan::{FileRewrite, ImportPlan, Targets};
use crate::config::{ConfigError, grants};
use crate::host::error::CliError;
use crate::host::policy_templates;
use crate::protocol::Problem;
use std::path::{Path, PathBuf};

/// File that was written, with the backup of its previous content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenFile {
    pub path: PathBuf,
    pub shown: String,
    pub backup: Option<PathBuf>,
}

/// Writes all files in a plan, calling `each` after each of them.
///
/// # Errors
/// Returns an error for the first file that cannot be written. The files before it have already been written, and
/// running the import again completes it.
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

/// Replaces one of the user's files, unless it has changed since the plan was made. Returns the path of the backup, if
/// there is one.
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

/// Creates a file in the project. Fails if the path contains a symlink.
fn create_in_project(file: &FileRewrite, workspace: &Path) -> Result<Option<PathBuf>, CliError> {
    let given = file.path.to_str().unwrap_or_default();
    let is_direct = crate::sys::path::resolve(given, workspace, None).is_ok_and(|found| found.real == file.path);
    let Some(directory) = file.path.parent().filter(|_| is_direct) else {
        return Err(CliError::usage(format!("`{}` goes through a symlink; nothing is written there", file.shown)));
    };
    policy_templates::write(directory, &file.path, &file.new, false, false)
}
