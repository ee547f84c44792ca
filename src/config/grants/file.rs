//! Atomic changes to the user's policy files, made by one process at a time.

use crate::config::ConfigError;
use crate::protocol::Problem;
use crate::sys::file::{Existing, Parents, PreImage, ReadError, WriteError, create_private_directory, replace, write_whole};
use crate::sys::path::{PathKind, ResolvedPath, resolve};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// Maximum size of a policy file in bytes.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum number of attempts to change a file that another program keeps modifying.
const TRIES: usize = 5;

/// Locks the policy files for a change, which prevents two processes from overwriting each other's changes.
pub(crate) fn lock(config_dir: &Path) -> Result<File, ConfigError> {
    let path = config_dir.join("grants.lock");
    let taken = create_private_directory(config_dir).and_then(|()| crate::sys::file::lock(&path));
    taken.map_err(|error| {
        let problem = Problem::new(format!("cannot lock `{}`", path.display())).because(&error);
        ConfigError::single(problem.hint(hint_for(&error)))
    })
}

fn hint_for(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::WouldBlock => "try again when that process has finished",
        _ => "make its directory writable",
    }
}

/// Returns the text of a file, or `None` if it does not exist. Symlinks are followed.
pub(crate) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let Some(bytes) = read_bytes(&resolve_file(path)?, path)? else { return Ok(None) };
    text(bytes, path).map(Some)
}

/// Replaces the content of a file with the result of `edit`, which is passed the current text, or `None` if the file
/// does not exist. The caller must hold the lock.
///
/// If another program modifies the file in the meantime, `edit` is called again with the new text, so no change is
/// lost. If an error occurs, the file is left unchanged.
pub(crate) fn change<T>(
    path: &Path,
    mut edit: impl FnMut(Option<&str>) -> Result<(String, T), ConfigError>,
) -> Result<T, ConfigError> {
    for _ in 0..TRIES {
        let place = resolve_file(path)?;
        let old = read_bytes(&place, path)?;
        let before = old.as_deref().map_or(PreImage::Absent, PreImage::hash);
        let old = old.map(|bytes| text(bytes, path)).transpose()?;
        let (new, made) = edit(old.as_deref())?;
        if old.as_deref() == Some(new.as_str()) {
            return Ok(made);
        }
        let written = match before {
            PreImage::Absent => match create(&place.real, new.as_bytes(), Existing::Keep) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(WriteError::Changed),
                written => written.map_err(WriteError::Io),
            },
            PreImage::Content(_) => replace(&place.real, new.as_bytes(), &before, Parents::MustExist),
        };
        match written {
            Ok(()) => return Ok(made),
            Err(WriteError::Changed) => {}
            Err(error) => return Err(file_error(path, "write", &error)),
        }
    }
    Err(ConfigError::single(Problem::new(format!("`{}` is being changed by another program", path.display())).hint("try again")))
}

/// Atomically creates a file that only its owner can access.
pub(super) fn create(real: &Path, content: &[u8], existing: Existing) -> std::io::Result<()> {
    create_private_directory(real.parent().unwrap_or(real))?;
    write_whole(real, content, existing)
}

fn resolve_file(path: &Path) -> Result<ResolvedPath, ConfigError> {
    let Some(given) = path.to_str() else {
        let problem = Problem::new(format!("the name of `{}` is not UTF-8 text", path.display()));
        return Err(ConfigError::single(problem.hint("set AYE_CONFIG_DIR to another directory")));
    };
    resolve(given, Path::new("/"), None).map_err(|error| file_error(path, "read", &error))
}

fn read_bytes(place: &ResolvedPath, path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    match place.kind {
        PathKind::Missing => Ok(None),
        PathKind::Directory | PathKind::Special | PathKind::Link { .. } => {
            Err(ConfigError::single(Problem::new(format!("`{}` is not a regular file", path.display())).hint("move it away")))
        }
        PathKind::File { .. } => match crate::sys::file::read(&place.real, MAX_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ReadError::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error(path, "read", &error)),
        },
    }
}

fn text(bytes: Vec<u8>, path: &Path) -> Result<String, ConfigError> {
    let wrong = |_| ConfigError::single(Problem::new(format!("`{}` is not UTF-8 text", path.display())).hint("fix the file"));
    String::from_utf8(bytes).map_err(wrong)
}

fn file_error(path: &Path, done: &str, error: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::single(Problem::new(format!("cannot {done} `{}`", path.display())).because(error))
}
