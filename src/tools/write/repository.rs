//! Whether a write would give git something to run, in a repository that no name shows: any directory with `HEAD`, `objects` and `refs`.

use crate::protocol::{ErrorCode, Target, ToolError};
use std::path::{Path, PathBuf};

/// What makes a directory a repository for git.
pub(in crate::tools) const MARKS: [&str; 3] = ["HEAD", "objects", "refs"];
/// What git in it runs, or takes programs and places from.
pub(in crate::tools) const TRUSTED: &[&str] =
    &["config", "config.worktree", "commondir", "gitdir", "hooks", "info", "modules", "worktrees"];

/// Refuses to change what such a repository trusts, and to write the last thing that makes a directory one.
pub(in crate::tools) fn guard(target: &Target) -> Result<(), ToolError> {
    let mut directory = PathBuf::from("/");
    for name in target.real.strip_prefix("/").unwrap_or(&target.real) {
        let named = |known: &&str| name.eq_ignore_ascii_case(known);
        match missing(&directory).as_slice() {
            [] if TRUSTED.iter().any(named) => {
                return Err(refused(
                    target,
                    "it belongs to a git repository that has no `.git`, and could make git run a program",
                ));
            }
            [last] if named(last) => {
                return Err(refused(target, "it would make its directory a git repository, whose `config` could run programs"));
            }
            _ => {}
        }
        directory.push(name);
    }
    Ok(())
}

/// The marks that a directory lacks.
fn missing(directory: &Path) -> Vec<&'static str> {
    MARKS.into_iter().filter(|mark| directory.join(mark).symlink_metadata().is_err()).collect()
}

fn refused(target: &Target, why: &str) -> ToolError {
    let message = format!("`{}` is not changed: {why}; leave it, or ask the person to change it", target.given);
    ToolError::new(ErrorCode::PolicyDenied, message)
}
