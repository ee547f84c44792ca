//! Converts path arguments to targets, and paths to names for display.

use super::error::invalid;
use super::settings::ToolSettings;
use crate::protocol::{ARTIFACT_SCHEME, ErrorCode, Place, Target, ToolError};
use crate::sys::path::{self, PathError, PathKind, ResolvedPath};
use std::io;
use std::path::Path;

/// The rules by which a call's paths are resolved.
pub(super) struct Paths<'a> {
    pub(super) settings: &'a ToolSettings,
    lookup: PathLookup,
}

enum PathLookup {
    Disk,
    /// By the text of the path alone, without accessing the disk.
    Text,
}

impl<'a> Paths<'a> {
    pub(super) fn on_disk(settings: &'a ToolSettings) -> Self {
        Self { settings, lookup: PathLookup::Disk }
    }

    pub(super) fn lexical(settings: &'a ToolSettings) -> Self {
        Self { settings, lookup: PathLookup::Text }
    }

    /// Resolves a path that is only read, which may also be the URI of an artifact.
    pub(super) fn source(&self, field: &str, given: &str, meant: ExpectedKind) -> Result<Target, ToolError> {
        let Some(digits) = given.strip_prefix(ARTIFACT_SCHEME) else { return self.target(field, given, meant) };
        let unknown = |message: String| ToolError::new(ErrorCode::FileNotFound, format!("`{field}`: {message}"));
        let Some(artifacts) = &self.settings.session.artifacts else {
            return Err(unknown(format!("this session has no artifacts; for a file with that name, use `./{given}`")));
        };
        let kept = artifacts.find(given).map_err(|error| {
            let a_name = !digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let hint = if a_name { format!("; for a file with that name, use `./{given}`") } else { String::new() };
            unknown(format!("{error}{hint}"))
        })?;
        Ok(Target { given: kept.artifact.uri, real: kept.path, place: Place::File { bytes: kept.artifact.bytes } })
    }

    /// Resolves the argument `field`. If the disk is not accessed, the path is assumed to be of the kind `meant`.
    pub(super) fn target(&self, field: &str, given: &str, meant: ExpectedKind) -> Result<Target, ToolError> {
        self.form_may_be(field, given)?;
        let (workspace, home) = (&self.settings.workspace, self.settings.home.as_deref());
        let (real, place) = match self.lookup {
            PathLookup::Text => {
                let real = path::lexical(given, workspace, home).map_err(|error| path_error(field, &error))?;
                (real, meant.to_file_kind())
            }
            PathLookup::Disk => {
                let found = path::resolve(given, workspace, home).map_err(|error| path_error(field, &error))?;
                self.links_may_be(field, given, &found)?;
                if found.names_directory && found.kind == PathKind::Missing && meant == ExpectedKind::File {
                    return Err(invalid(format!("`{field}`: `{given}` is a directory; specify the path of a file")));
                }
                (found.real, file_kind(found.kind))
            }
        };
        Ok(Target { given: given.to_owned(), real, place })
    }

    /// Resolves a path to be deleted or moved. If the path ends in a symlink without a trailing slash, the target is
    /// the symlink itself.
    pub(super) fn entry(&self, field: &str, given: &str) -> Result<Target, ToolError> {
        let PathLookup::Disk = self.lookup else { return self.target(field, given, ExpectedKind::File) };
        self.form_may_be(field, given)?;
        let (workspace, home) = (&self.settings.workspace, self.settings.home.as_deref());
        let found = path::resolve_entry(given, workspace, home).map_err(|error| path_error(field, &error))?;
        self.links_may_be(field, given, &found)?;
        Ok(Target { given: given.to_owned(), place: file_kind(found.kind), real: found.real })
    }

    /// Rejects artifact URIs. If `tools.absolute_paths_only` is set, also rejects relative paths, except `.` and an
    /// empty path.
    fn form_may_be(&self, field: &str, given: &str) -> Result<(), ToolError> {
        if given.starts_with(ARTIFACT_SCHEME) {
            let message = "names an artifact, which only ReadFile and Grep can read; for a file with that name, use";
            return Err(invalid(format!("`{field}`: `{given}` {message} `./{given}`")));
        }
        let exact = given.is_empty() || given == "." || given.starts_with(['/', '~']);
        if exact || self.settings.paths.relative_paths {
            return Ok(());
        }
        let message = format!("`{field}`: `{given}` is relative, and `tools.absolute_paths_only` is set; use an absolute path");
        Err(invalid(message))
    }

    /// Rejects a path that leads through a symlink if `tools.follow_symlinks` is off.
    fn links_may_be(&self, field: &str, given: &str, found: &ResolvedPath) -> Result<(), ToolError> {
        if !found.through_links || self.settings.paths.follow_links {
            return Ok(());
        }
        let message =
            format!("`{field}`: `{given}` goes through a symlink, and `tools.follow_symlinks` is off; use the real path");
        Err(ToolError::new(ErrorCode::PermissionDenied, message))
    }
}

/// The kind of entry that an argument expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedKind {
    File,
    Directory,
}

impl ExpectedKind {
    fn to_file_kind(self) -> Place {
        match self {
            Self::File => Place::File { bytes: 0 },
            Self::Directory => Place::Directory,
        }
    }
}

fn file_kind(kind: PathKind) -> Place {
    match kind {
        // A symlink is treated as a small file, because nothing is read through it.
        PathKind::File { bytes } | PathKind::Link { bytes } => Place::File { bytes },
        PathKind::Directory => Place::Directory,
        PathKind::Missing => Place::Missing,
        PathKind::Special => Place::Special,
    }
}

fn path_error(field: &str, error: &PathError) -> ToolError {
    let code = match error {
        PathError::Denied(_) | PathError::Unreadable { .. } => ErrorCode::PermissionDenied,
        PathError::Empty
        | PathError::Nul
        | PathError::TooLong
        | PathError::OtherHome(_)
        | PathError::NoHome
        | PathError::Loop(_)
        | PathError::Magic(_)
        | PathError::NotADirectory(_) => ErrorCode::InvalidRequest,
    };
    ToolError::new(code, format!("`{field}`: {error}"))
}

/// Returns a path as it is displayed: relative if it is inside the workspace, as a URI if it is an artifact, and
/// otherwise absolute.
pub(super) fn display_path(real: &Path, settings: &ToolSettings) -> String {
    if let Some(uri) = settings.session.artifacts.as_ref().and_then(|artifacts| artifacts.uri_of(real)) {
        return uri;
    }
    match real.strip_prefix(&settings.workspace) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => real.display().to_string(),
    }
}

/// Returns a path for display to the user on a single line, because a line break in a name could fake another line.
pub(super) fn display_path_one_line(real: &Path, settings: &ToolSettings) -> String {
    let name = display_path(real, settings);
    if !name.contains(['\n', '\r']) {
        return name;
    }
    name.replace('\n', "\\n").replace('\r', "\\r")
}

/// Converts an error that occurred when a resolved path was opened.
pub(super) fn open_error(target: &Target, error: &io::Error) -> ToolError {
    let given = &target.given;
    match error.kind() {
        io::ErrorKind::NotFound => {
            ToolError::new(ErrorCode::FileNotFound, format!("`{given}` no longer exists; find it with Glob or ListDirectory"))
        }
        io::ErrorKind::PermissionDenied => {
            ToolError::new(ErrorCode::PermissionDenied, format!("`{given}`: permission denied; ask the user for access"))
        }
        io::ErrorKind::NotADirectory => changed_error(given),
        _ if path::is_symlink_error(error) => changed_error(given),
        _ => ToolError::new(ErrorCode::ToolExecutionFailed, format!("`{given}`: {error}")),
    }
}

fn changed_error(given: &str) -> ToolError {
    let message =
        format!("`{given}` now resolves to a different path than when the call was checked, so nothing was done; try again");
    ToolError::new(ErrorCode::Conflict, message)
}

/// Returns the error for devices, FIFOs and sockets, which have no content that could be read or replaced.
pub(super) fn special_file_error(target: &Target) -> ToolError {
    invalid(format!(
        "`{}` is a device, FIFO or socket, not a file; Stat describes it, and only a command can use it",
        target.given
    ))
}

/// Returns the error for a path that does not exist, with any similar names in the same directory.
pub(super) fn not_found_error(target: &Target, settings: &ToolSettings) -> ToolError {
    let mut message = format!("`{}` does not exist", target.given);
    let similar = similar_names(&target.real, settings);
    if similar.is_empty() {
        message.push_str("; find it with Glob or ListDirectory");
    } else {
        message.push_str("; did you mean ");
        message.push_str(&similar.join(" or "));
        message.push('?');
    }
    ToolError::new(ErrorCode::FileNotFound, message)
}

fn similar_names(real: &Path, settings: &ToolSettings) -> Vec<String> {
    /// Maximum number of entries to examine for similar names, and the minimum similarity of two names.
    const MAX_EXAMINED: usize = 10_000;
    const ALIKE: f64 = 0.7;
    let (Some(directory), Some(name)) = (real.parent(), real.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let Ok(entries) = path::entries(directory) else { return Vec::new() };
    let name = name.to_lowercase();
    let mut alike: Vec<(f64, String)> = entries
        .take(MAX_EXAMINED)
        .flatten()
        .map(|entry| directory.join(entry.file_name()))
        .filter(|path| (settings.paths.may_read)(path))
        .filter_map(|path| {
            let other = path.file_name()?.to_str()?.to_lowercase();
            let score = strsim::jaro_winkler(&name, &other);
            (score >= ALIKE).then(|| (score, format!("`{}`", display_path(&path, settings))))
        })
        .collect();
    alike.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    alike.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Maximum number of names to list in a sentence.
const MAX_NAMED: usize = 5;

/// Lists the first few names, followed by the number of any others.
pub(super) fn join_names(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let named = names.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}
