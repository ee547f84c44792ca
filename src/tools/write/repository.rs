//! Whether a write would give git something to run, in a repository that no name shows: any directory with `HEAD`, `objects` and `refs`.

use crate::protocol::{ErrorCode, Target, ToolError};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What makes a directory a repository for git.
pub(in crate::tools) const MARKS: [&str; 3] = ["HEAD", "objects", "refs"];
/// What git in it runs, or takes programs and places from.
pub(in crate::tools) const TRUSTED: &[&str] =
    &["config", "config.worktree", "commondir", "gitdir", "hooks", "info", "modules", "worktrees"];

/// Refuses to change what such a repository trusts, and to write the last thing that makes a directory one.
pub(in crate::tools) fn guard(target: &Target) -> Result<(), ToolError> {
    guard_path((&target.real, &target.given))
}

/// Where something is written, and how the call has it.
pub(in crate::tools) type Written<'a> = (&'a Path, &'a str);

/// Only one change at a time may make a part of a repository.
static MAKING: Mutex<()> = Mutex::new(());

/// Makes a change that was planned while its places were free. Others may have made the rest of a repository since.
pub(in crate::tools) fn guarded<T, E: From<ToolError>>(
    places: &[Written<'_>],
    change: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let named = |name: &OsStr| MARKS.iter().chain(TRUSTED).any(|known| name.eq_ignore_ascii_case(known));
    if !places.iter().any(|(real, _)| real.iter().any(named)) {
        return change();
    }
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    guard_all(places)?;
    change()
}

/// Refuses what the guard refuses of any of these, and what they come to together.
pub(in crate::tools) fn guard_all(places: &[Written<'_>]) -> Result<(), ToolError> {
    let mut made: BTreeMap<PathBuf, Vec<(&str, Written<'_>)>> = BTreeMap::new();
    for place in places {
        guard_path(*place)?;
        let mut directory = PathBuf::from("/");
        for name in place.0.strip_prefix("/").unwrap_or(place.0) {
            if let Some(mark) = MARKS.iter().find(|known| name.eq_ignore_ascii_case(known)) {
                made.entry(directory.clone()).or_default().push((mark, *place));
            }
            directory.push(name);
        }
    }
    for (directory, marks) in made {
        let missing = missing(&directory);
        let whole = missing.iter().all(|mark| marks.iter().any(|(made, _)| made == mark));
        if let Some((_, place)) = marks.last().filter(|_| whole && !missing.is_empty()) {
            return Err(refused(
                *place,
                "with the other changes it would make its directory a git repository, whose `config` can run programs",
            ));
        }
    }
    Ok(())
}

fn guard_path(place: Written<'_>) -> Result<(), ToolError> {
    let mut directory = PathBuf::from("/");
    for name in place.0.strip_prefix("/").unwrap_or(place.0) {
        let named = |known: &&str| name.eq_ignore_ascii_case(known);
        match missing(&directory).as_slice() {
            [] if TRUSTED.iter().any(named) => {
                return Err(refused(
                    place,
                    "it belongs to a git repository without a `.git` directory, and can make git run a program",
                ));
            }
            [last] if named(last) => {
                return Err(refused(place, "it would make its directory a git repository, whose `config` can run programs"));
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

fn refused(place: Written<'_>, why: &str) -> ToolError {
    let message = format!("`{}` was not changed: {why}; leave it, or ask the user to change it", place.1);
    ToolError::new(ErrorCode::PolicyDenied, message)
}
