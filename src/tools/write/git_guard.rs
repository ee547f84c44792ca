//! Protects against writes that would make git run a program in a bare repository. Git considers any directory that
//! contains `HEAD`, `objects` and `refs` a bare repository.

use crate::protocol::{ErrorCode, Target, ToolError};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Entries that, together, make a directory a git repository.
pub(in crate::tools) const MARKS: [&str; 3] = ["HEAD", "objects", "refs"];
/// Entries that git runs, or that specify programs or paths for it.
pub(in crate::tools) const TRUSTED: &[&str] =
    &["config", "config.worktree", "commondir", "gitdir", "hooks", "info", "modules", "worktrees"];

/// Rejects changes to protected entries of a bare repository, and rejects creating the last entry that would turn a
/// directory into one.
pub(in crate::tools) fn guard(target: &Target) -> Result<(), ToolError> {
    guard_path((&target.real, &target.given))
}

/// A path that is written: the real path, followed by the path given in the call.
pub(in crate::tools) type Written<'a> = (&'a Path, &'a str);

/// Serializes changes that may create part of a repository.
static MAKING: Mutex<()> = Mutex::new(());

/// Makes a planned change after checking it once more, because other parts of a repository may have been created in the
/// meantime.
pub(in crate::tools) fn with_guard<T, E: From<ToolError>>(
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

/// Rejects these writes if the guard would reject any of them, either on its own or in combination with the others.
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
        let missing = missing_entries(&directory);
        let whole = missing.iter().all(|mark| marks.iter().any(|(made, _)| made == mark));
        if let Some((_, place)) = marks.last().filter(|_| whole && !missing.is_empty()) {
            return Err(guard_error(
                *place,
                "with the other changes the file would make its directory a git repository, whose `config` can run programs",
            ));
        }
    }
    Ok(())
}

fn guard_path(place: Written<'_>) -> Result<(), ToolError> {
    let mut directory = PathBuf::from("/");
    for name in place.0.strip_prefix("/").unwrap_or(place.0) {
        let named = |known: &&str| name.eq_ignore_ascii_case(known);
        match missing_entries(&directory).as_slice() {
            [] if TRUSTED.iter().any(named) => {
                return Err(guard_error(
                    place,
                    "the file belongs to a git repository without a `.git` directory, and can make git run a program",
                ));
            }
            [last] if named(last) => {
                return Err(guard_error(
                    place,
                    "the file would make its directory a git repository, whose `config` can run \
                programs",
                ));
            }
            _ => {}
        }
        directory.push(name);
    }
    Ok(())
}

/// Returns the entries that the directory lacks to be a repository.
fn missing_entries(directory: &Path) -> Vec<&'static str> {
    MARKS.into_iter().filter(|mark| directory.join(mark).symlink_metadata().is_err()).collect()
}

fn guard_error(place: Written<'_>, why: &str) -> ToolError {
    let message = format!("`{}` was not changed: {why}; leave it, or ask the user to change it", place.1);
    ToolError::new(ErrorCode::PolicyDenied, message)
}
