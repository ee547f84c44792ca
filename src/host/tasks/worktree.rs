//! Creates and removes the git worktrees of tasks, and compares them with their initial commits.

use super::description::{CopyKind, TaskDescription};
use crate::host::error::CliError;
use crate::protocol::Problem;
use crate::sys::file;
use crate::tools::{CollectedChanges, FileState};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum size of a changed file in bytes.
const MAX_FILE_BYTES: u64 = 10 << 20;
/// Prefix of the names of new branches.
const BRANCH: &str = "aye/task-";

/// Function that returns whether `aye task keep` has written this content to the workspace.
type AppliedContent<'a> = dyn Fn(&str, Option<&FileState>) -> bool + 'a;

/// Creates a worktree of the workspace's repository, in a directory next to the repository. If `branch` is `None`,
/// creates a new branch.
///
/// # Errors
/// Returns an error if the workspace is not part of a repository, if the repository has no commits, or if git fails.
pub(crate) fn create(workspace: &Path, id: &str, branch: Option<&str>) -> Result<CopyKind, CliError> {
    let failed = |why: String| {
        let problem = Problem::new("cannot create a git worktree for the task").because(why);
        CliError::usage(problem.hint("omit `--worktree` to run the task in a layer over the workspace"))
    };
    let top = PathBuf::from(text(workspace, &["rev-parse", "--show-toplevel"]).map_err(failed)?);
    let no_commit = |_| failed("the repository has no commit yet".to_owned());
    let head = text(workspace, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).map_err(no_commit)?;
    let name = top.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let directory = top.with_file_name(format!("{name}.tasks")).join(id);
    let branch = branch.map_or_else(|| format!("{BRANCH}{id}"), str::to_owned);
    run(workspace, &["check-ref-format", "--branch", &branch])
        .map_err(|_| failed(format!("`{branch}` is not a valid branch name")))?;
    let reference = format!("refs/heads/{branch}");
    let is_known = run(workspace, &["rev-parse", "--verify", "--quiet", &reference]).is_ok();
    let path = directory.to_str().ok_or_else(|| failed("the path is not UTF-8".to_owned()))?;
    let added = if is_known {
        run(workspace, &["worktree", "add", "--quiet", path, &branch])
    } else {
        run(workspace, &["worktree", "add", "--quiet", "-b", &branch, path, &head])
    };
    added.map_err(failed)?;
    let below = workspace.strip_prefix(&top).unwrap_or(Path::new(""));
    let copy = directory.join(below);
    let base = match text(&directory, &["rev-parse", "HEAD"]) {
        Ok(base) if copy.is_dir() => base,
        Ok(base) => {
            remove(workspace, &directory, &branch, &base)?;
            return Err(failed(format!("`{}` is not part of the commit", below.display())));
        }
        Err(why) => return Err(failed(why)),
    };
    Ok(CopyKind::Worktree { workspace: copy, directory, branch, base })
}

/// Removes a task's worktree, if it has one. If the worktree's branch is kept, returns the branch.
///
/// # Errors
/// Returns an error if git fails.
pub(crate) fn remove_of(description: &TaskDescription) -> Result<Option<String>, CliError> {
    match &description.copy {
        CopyKind::Layer => Ok(None),
        CopyKind::Worktree { directory, branch, base, .. } => remove(&description.workspace, directory, branch, base),
    }
}

/// Removes a worktree, including uncommitted changes. The branch is deleted as well, unless it contains commits made by
/// the task, in which case it is returned.
///
/// # Errors
/// Returns an error if git fails.
fn remove(workspace: &Path, directory: &Path, branch: &str, base: &str) -> Result<Option<String>, CliError> {
    let failed = |why: String| CliError::failed(Problem::new("cannot remove the task's git worktree").because(why));
    if directory.exists() {
        let path = directory.to_string_lossy();
        run(workspace, &["worktree", "remove", "--force", "--force", &path]).map_err(failed)?;
    } else {
        run(workspace, &["worktree", "prune"]).map_err(failed)?;
    }
    // The parent directory is removed only if it contains no worktrees of other tasks.
    let _ = directory.parent().map(std::fs::remove_dir);
    let tip = text(workspace, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]);
    let is_own = branch.starts_with(BRANCH);
    match tip {
        Ok(tip) if tip == base && is_own => run(workspace, &["branch", "--quiet", "-D", branch]).map(|_| None).map_err(failed),
        Ok(_) => Ok(Some(branch.to_owned())),
        Err(_) => Ok(None),
    }
}

/// Returns the changes in a worktree since its initial commit, compared with the files in the workspace.
///
/// # Errors
/// Returns an error if the worktree is missing, if git fails, or if a file cannot be read.
pub(crate) fn changes(
    workspace: &Path,
    worktree: &Path,
    base: &str,
    is_applied: &AppliedContent<'_>,
) -> Result<CollectedChanges, String> {
    let changed = run(worktree, &["diff", "--no-ext-diff", "--no-renames", "--name-only", "-z", "--relative", base, "--", "."])?;
    let new = run(worktree, &["ls-files", "--others", "--exclude-standard", "-z"])?;
    let names = |bytes: &[u8]| {
        let names = bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>()
    };
    let paths: BTreeSet<PathBuf> = names(&changed).into_iter().chain(names(&new)).map(PathBuf::from).collect();
    let mut collected = CollectedChanges::default();
    for path in paths {
        let name = path.to_string_lossy().into_owned();
        let old = content_at(worktree, base, &name)?;
        let (now, result) = (content(&workspace.join(&path))?, content(&worktree.join(&path))?);
        let (Content::File(now), Content::File(result), Content::File(old)) = (now, result, old) else {
            collected.leave_out(&path, "the file is not, or was not, a regular file of at most 10 MB");
            continue;
        };
        let state = |side: &Option<(Vec<u8>, bool)>| side.as_ref().map(|(bytes, executable)| FileState::new(bytes, *executable));
        let is_seen = state(&now) == state(&old) || is_applied(&name, state(&now).as_ref());
        collected.add_file(&name, now, result, is_seen)?;
    }
    Ok(collected)
}

/// Content found at a path.
enum Content {
    /// Content of a file and whether the file is executable, or `None` if nothing exists at the path.
    File(Option<(Vec<u8>, bool)>),
    Other,
}

fn content(path: &Path) -> Result<Content, String> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(Content::File(None)) };
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Ok(Content::Other);
    }
    let bytes = file::read(path, MAX_FILE_BYTES).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    Ok(Content::File(Some((bytes, metadata.permissions().mode() & 0o100 != 0))))
}

/// Returns the content found at a path in a commit.
fn content_at(worktree: &Path, commit: &str, path: &str) -> Result<Content, String> {
    let entry = text(worktree, &["--literal-pathspecs", "ls-tree", commit, "--", path])?;
    let mut fields = entry.split_ascii_whitespace();
    let (Some(mode), Some("blob"), Some(id)) = (fields.next(), fields.next(), fields.next()) else {
        return Ok(if entry.is_empty() { Content::File(None) } else { Content::Other });
    };
    if mode.starts_with("12") {
        return Ok(Content::Other);
    }
    Ok(Content::File(Some((run(worktree, &["cat-file", "blob", id])?, mode == "100755"))))
}

fn text(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    run(directory, arguments).map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Runs git without hooks or prompts, and returns its output.
fn run(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let fixed = ["--no-optional-locks", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"];
    let mut git = Command::new("git");
    git.args(fixed).args(arguments).current_dir(directory).stdin(Stdio::null()).env("GIT_TERMINAL_PROMPT", "0");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    let output = git.output().map_err(|error| format!("cannot run git: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("git failed without a message");
    Err(line.trim_start_matches("fatal: ").to_owned())
}
