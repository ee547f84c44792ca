//! Finds programs in `PATH` as a shell does, without running any.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Returns the directories in a `PATH` value that are outside these roots, because a project must not choose the user's
/// programs. Relative and nonexistent directories are omitted too.
pub(crate) fn find_outside(path: &OsStr, roots: &[PathBuf]) -> OsString {
    let is_outside = |place: &PathBuf| {
        let real = place.canonicalize();
        let is_below = |root: &PathBuf| place.starts_with(root) || real.as_ref().is_ok_and(|real| real.starts_with(root));
        place.is_absolute() && real.is_ok() && !roots.iter().any(is_below)
    };
    std::env::join_paths(std::env::split_paths(path).filter(is_outside)).unwrap_or_default()
}

/// Returns those of `names` that are programs in a directory in `path`, which has the format of `PATH`. Relative
/// directories are ignored, because they depend on the working directory.
pub(crate) fn find_present<'a>(names: impl IntoIterator<Item = &'a str>, path: &str) -> Vec<&'a str> {
    let directories: Vec<_> = std::env::split_paths(path).filter(|directory| directory.is_absolute()).collect();
    let there = |name: &&str| directories.iter().any(|directory| is_program(&directory.join(name)));
    names.into_iter().filter(there).collect()
}

/// Returns the path of the first program with this name in an absolute directory in `path`.
pub(crate) fn find(name: &str, path: &str) -> Option<PathBuf> {
    let places = std::env::split_paths(path).filter(|directory| directory.is_absolute()).map(|directory| directory.join(name));
    places.into_iter().find(|place| is_program(place))
}

/// Returns whether a path refers to an executable file.
#[cfg(unix)]
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns whether a path, with an extension for programs appended, refers to a file.
#[cfg(not(unix))]
pub(crate) fn is_program(path: &Path) -> bool {
    ["exe", "cmd", "bat"].iter().any(|kind| path.with_extension(kind).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_executables_in_absolute_path_directories_are_found() {
        let place = tempfile::tempdir().unwrap();
        for (name, mode) in [("runs", 0o755), ("does-not", 0o644)] {
            let path = place.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(place.path().join("directory")).unwrap();
        let path = format!("relative:.::{}", place.path().display());
        assert_eq!(find_present(["does-not", "directory", "runs", "missing"], &path), ["runs"]);
        assert_eq!(find_present(["runs"], "").len(), 0);
    }
}
