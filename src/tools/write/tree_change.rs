//! Steps that deleting, moving and copying have in common: examining the tree, and describing it and any errors.

use crate::protocol::{ErrorCode, Place, Target, ToolError, format_count};
use crate::sys::file::tree::{self, Form, Survey, TreeError};
use crate::tools::call_result::ToolFailure;
use crate::tools::error::invalid;
use crate::tools::executable_files::is_opened;
use crate::tools::paths::{display_path_one_line, open_error, special_file_error};
use crate::tools::settings::ToolSettings;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum size in bytes of a file whose text is sent to the language servers.
const TEXT_BYTES: u64 = 1 << 20;
/// Maximum number of entries to list for the user.
const MAX_NAMED: usize = 12;
/// Maximum number of paths that run code as soon as their folder is opened and are checked against the policy
/// individually.
const MAX_OPENED: usize = 20;

/// A path that is to be deleted, moved or copied and has been examined.
pub(in crate::tools) struct InspectedPath {
    pub survey: Survey,
    /// First path below this one that the policy does not allow the agent to change.
    pub refused: Option<PathBuf>,
    /// Paths that are created or removed and run code as soon as their folder is opened.
    pub opened: Vec<PathBuf>,
    /// First few entries below the path, to be shown to the user.
    named: Vec<String>,
}

/// Examines every entry below `target` and checks each path with `may`. `ends` contains the locations of the tree
/// before and after the change.
pub(in crate::tools) fn inspect(
    target: &Target,
    ends: &[&Path],
    settings: &ToolSettings,
    may: &dyn Fn(&Path) -> bool,
) -> Result<InspectedPath, ToolError> {
    let (mut refused, mut named, mut opened) = (None, Vec::new(), Vec::new());
    let survey = tree::survey(&target.real, &mut |path, form| {
        if refused.is_none() && !may(path) {
            refused = Some(path.to_owned());
        }
        let below = path.strip_prefix(&target.real).unwrap_or(Path::new(""));
        if path != target.real && opened.len() < MAX_OPENED {
            opened.extend(ends.iter().map(|end| end.join(below)).filter(|place| is_opened(place, settings)));
        }
        if path != target.real && named.len() < MAX_NAMED {
            named.push(format!("{}{}", display_path_one_line(path, settings), mark(form)));
        }
    });
    let survey = survey.map_err(|error| failure_reason(target, error).error)?;
    Ok(InspectedPath { survey, refused, opened, named })
}

fn mark(form: Form) -> &'static str {
    match form {
        Form::Directory => "/",
        Form::File | Form::Link | Form::Special => "",
    }
}

impl InspectedPath {
    /// Formats the size, for example as `12 files and 3 directories, 4096 bytes`. A single file or symlink is described
    /// by itself.
    pub(in crate::tools) fn size(&self) -> String {
        let Survey { files, directories, links, bytes, .. } = self.survey;
        match self.survey.form {
            Form::Link => "the symlink itself, not its target".to_owned(),
            Form::File | Form::Special => format!("{bytes} bytes"),
            Form::Directory if self.survey.entries() == 0 => "an empty directory".to_owned(),
            Form::Directory => {
                let kinds =
                    [(files, "file", "files"), (directories - 1, "directory", "directories"), (links, "symlink", "symlinks")];
                let parts: Vec<_> = kinds
                    .into_iter()
                    .filter(|(count, ..)| *count > 0)
                    .map(|(count, one, many)| format_count(count, one, many))
                    .collect();
                format!("{}, {bytes} bytes", parts.join(", "))
            }
        }
    }

    /// Returns notes that list the first few entries.
    pub(in crate::tools) fn notes(&self) -> Vec<String> {
        if self.named.is_empty() {
            return Vec::new();
        }
        let rest = self.survey.entries().saturating_sub(self.named.len() as u64);
        let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
        vec![format!("contains: {}{more}", self.named.join(", "))]
    }
}

/// Creates a target for a path that was refused, so that the policy can report it.
pub(in crate::tools) fn target_for_refused(path: &Path, settings: &ToolSettings) -> Target {
    Target { given: display_path_one_line(path, settings), real: path.to_owned(), place: Place::File { bytes: 0 } }
}

/// Returns the text of a file that is deleted, moved or copied, if a language server handles one of these paths.
/// Returns `None` unless it is a small text file.
pub(in crate::tools) fn text_for_servers(
    target: &Target,
    survey: &Survey,
    ends: &[&Path],
    settings: &ToolSettings,
) -> Option<String> {
    let servers = settings.session.diagnostics.as_ref().filter(|_| survey.form == Form::File && survey.bytes <= TEXT_BYTES)?;
    let is_covered = ends.iter().any(|end| servers.covers(end));
    let bytes = is_covered.then(|| crate::sys::file::read(&target.real, TEXT_BYTES).ok()).flatten()?;
    String::from_utf8(bytes).ok()
}

/// Checks that the path exists and can be deleted, moved or copied.
pub(in crate::tools) fn check_exists(target: &Target, settings: &ToolSettings) -> Result<(), ToolError> {
    match target.place {
        Place::Missing => Err(crate::tools::paths::not_found_error(target, settings)),
        Place::Special => Err(special_file_error(target)),
        Place::File { .. } | Place::Directory => Ok(()),
    }
}

/// Checks that nothing exists at the destination and that it is not inside the source.
pub(in crate::tools) fn check_free(source: &Target, destination: &Target) -> Result<(), ToolError> {
    let (from, to) = (&source.given, &destination.given);
    match destination.place {
        Place::Missing => {}
        Place::Directory => {
            let name = source.real.file_name().unwrap_or_default().to_string_lossy();
            let inside = format!("{}/{name}", to.trim_end_matches('/'));
            return Err(invalid(format!("`{to}` exists and is a directory; to put it inside, use `{inside}` as `destination`")));
        }
        Place::File { .. } | Place::Special => {
            return Err(invalid(format!("`{to}` exists and is not replaced; choose another `destination`, or delete it first")));
        }
    }
    if destination.real.starts_with(&source.real) {
        return Err(invalid(format!("`{to}` is inside `{from}`; choose a `destination` outside it")));
    }
    Ok(())
}

/// Explains why the operation failed, with a hint on what to do.
pub(in crate::tools) fn failure_reason(target: &Target, error: TreeError) -> ToolFailure {
    let given = &target.given;
    let (code, message) = match error {
        TreeError::Changed => {
            (ErrorCode::Conflict, format!("`{given}` changed since this was shown, so nothing was done; check it again"))
        }
        TreeError::Exists => (
            ErrorCode::Conflict,
            format!(
                "something was created at the destination of `{given}`, so nothing was replaced; choose another `destination`"
            ),
        ),
        TreeError::NoParent(parent) => (
            ErrorCode::FileNotFound,
            format!("the directory `{}` does not exist; create it with CreateDirectory", parent.display()),
        ),
        TreeError::Sealed(path) => {
            let message = format!("aye cannot change `{}`; nothing was done. Ask the user for access", path.display());
            (ErrorCode::PermissionDenied, message)
        }
        TreeError::OtherFileSystem(path) => (
            ErrorCode::InvalidRequest,
            format!("`{}` is the mount point of another file system; nothing was done. Name the paths inside it", path.display()),
        ),
        TreeError::Special(path) => (
            ErrorCode::InvalidRequest,
            format!("`{}` is a device, FIFO or socket, which cannot be copied; nothing was done", path.display()),
        ),
        error @ (TreeError::TooMany | TreeError::TooDeep) => {
            (ErrorCode::InvalidRequest, format!("`{given}`: {error}; handle its parts one by one, or use RunCommand"))
        }
        TreeError::Stopped => (ErrorCode::Cancelled, format!("stopped before it finished; nothing was done to `{given}`")),
        TreeError::Partly(error) => {
            let message = format!("`{given}` was only partly deleted ({error}); the rest is still there; check it");
            (ErrorCode::ToolExecutionFailed, message)
        }
        error @ TreeError::StillThere(_) => {
            let message = format!("`{given}`: {error}; the copy at the destination is complete, check both");
            (ErrorCode::ToolExecutionFailed, message)
        }
        TreeError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            (ErrorCode::PermissionDenied, format!("`{given}`: permission denied; nothing was done. Ask the user for access"))
        }
        TreeError::Io(error) => return open_error(target, &error).into(),
    };
    ToolError::new(code, message).into()
}
