//! Restrictions that apply to the text tools in addition to the policy, under each of their names.

use crate::protocol::{Action, ErrorCode, Place, Proposal, Target, TextTools, ToolError};
use std::path::Path;

/// Names of restricted tools, in lower case and without underscores. Some are aliases of `ReadFile`, `WriteFile`,
/// `Grep` and `Delete`, which are not restricted when called by their own names.
const NAMES: &[&str] = &["textinspect", "textpatch", "textread", "textcreate", "textsearch", "textdelete"];

/// Extension that a file without one is assumed to have.
const PLAIN: &str = "txt";

impl TextTools {
    /// Returns whether a call of this tool by this name is restricted.
    pub(in crate::tools) fn binds(name: &str, called: &str) -> bool {
        let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
        [name, called].iter().any(|name| NAMES.contains(&plain(name).as_str()))
    }

    /// Returns an error if the text tools are disabled.
    pub(in crate::tools) fn is_on(&self, called: &str) -> Result<(), ToolError> {
        if self.enabled {
            return Ok(());
        }
        let message = format!("{called} is disabled (`tools.text.enabled = false`); use ReadFile, EditFile, WriteFile or Grep");
        Err(ToolError::new(ErrorCode::PermissionDenied, message))
    }

    /// Rejects a call that affects a file which the restrictions do not permit.
    pub(in crate::tools) fn admit(&self, called: &str, actions: &[Action]) -> Result<(), ToolError> {
        for action in actions {
            match action {
                Action::Read { target } => self.admit_file(target)?,
                Action::Write { target } => {
                    self.admit_file(target)?;
                    if target.place == Place::Missing && !self.allow_create {
                        return Err(not_permitted(called, target, "does not exist, and `tools.text.allow_create` is false"));
                    }
                }
                Action::Delete { target } => {
                    self.admit_file(target)?;
                    if !self.allow_delete {
                        return Err(not_permitted(called, target, "cannot be deleted: `tools.text.allow_delete` is false"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn admit_file(&self, target: &Target) -> Result<(), ToolError> {
        if target.place == Place::Directory {
            return Ok(());
        }
        if !self.has_allowed_extension(&target.real) {
            let allowed: Vec<_> = self.allowed_extensions.iter().map(|extension| format!("`.{extension}`")).collect();
            let why = format!("has an extension that is not in `tools.text.allowed_extensions` ({})", allowed.join(", "));
            return Err(not_permitted("the text tools", target, &why));
        }
        match (target.place, self.max_file_size) {
            (Place::File { bytes }, Some(limit)) if bytes > limit => {
                Err(too_large_error(&format!("`{}` has", target.given), bytes, limit))
            }
            _ => Ok(()),
        }
    }

    /// Rejects a change if the resulting file would be too large.
    pub(in crate::tools) fn admit_size(&self, proposal: Option<&Proposal>) -> Result<(), ToolError> {
        match (proposal, self.max_file_size) {
            (Some(proposal), Some(limit)) if proposal.bytes > limit => {
                Err(too_large_error("the result would have", proposal.bytes, limit))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the restrictions permit a file with this name.
    pub(in crate::tools) fn has_allowed_extension(&self, path: &Path) -> bool {
        if self.allowed_extensions.is_empty() {
            return true;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let ends = |extension: &String| name.strip_suffix(extension.as_str()).is_some_and(|before| before.ends_with('.'));
        // Plain text often has no extension, as in `README` and `LICENSE`.
        let is_plain = !name.contains('.') && self.allowed_extensions.iter().any(|extension| extension == PLAIN);
        is_plain || self.allowed_extensions.iter().any(ends)
    }
}

fn too_large_error(what: &str, bytes: u64, limit: u64) -> ToolError {
    let message = format!("{what} {bytes} bytes, and `tools.text.max_file_size` is {limit}; ask the user to raise it");
    ToolError::new(ErrorCode::FileTooLarge, message)
}

fn not_permitted(called: &str, target: &Target, why: &str) -> ToolError {
    let message = format!("`{}` {why}; {called} cannot be used for this file; ask the user", target.given);
    ToolError::new(ErrorCode::PermissionDenied, message)
}
