//! Quarantine of a damaged database, whose files are moved aside unchanged.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// File name suffixes of the database's companion files, which SQLite creates.
pub(super) const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Moves the database and its companion files aside by renaming them. Returns the new path of the database.
pub(super) fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let target = free_name(path);
    for companion in COMPANIONS {
        rename_if_exists(&with_suffix(path, companion), &with_suffix(&target, companion))?;
    }
    rename_if_exists(path, &target)?;
    Ok(target)
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn free_name(path: &Path) -> PathBuf {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let taken = |name: &PathBuf| {
        std::iter::once(name.clone()).chain(COMPANIONS.map(|c| with_suffix(name, c))).any(|file| file.symlink_metadata().is_ok())
    };
    let first = with_suffix(path, &format!(".damaged-{stamp}"));
    let numbered = (2..).map(|number: u32| with_suffix(path, &format!(".damaged-{stamp}-{number}")));
    std::iter::once(first.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(first)
}

fn rename_if_exists(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
