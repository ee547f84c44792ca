//! Instruction files that proposals target, and the changes that proposals would make to them.

use super::document::{self, Added};
use super::inbox::{Change, OpenProposal};
use crate::config::{INSTRUCTION_BYTES, project_instruction_file};
use crate::host::context::AppContext;
use crate::protocol::{FileDiff, MemoryProposal, MemoryTarget};
use crate::sys::file::{PreImage, ReadError, read};
use crate::tools::line_hunks;
use std::path::{Path, PathBuf};

/// File name of the user's instruction files.
const NAME: &str = "AGENTS.md";

/// Current state of an instruction file.
pub(super) struct TargetFile {
    /// Path without symlinks.
    pub path: PathBuf,
    /// Path for display.
    pub shown: String,
    /// Content; `None` if the file does not exist.
    pub before: Option<String>,
    /// Name under which the project's trust record lists the file, if it belongs to the project.
    pub project_name: Option<String>,
}

/// Change that a proposal would make.
pub(super) struct PlannedInstruction {
    pub file: TargetFile,
    pub after: String,
    pub added: String,
    pub diff: String,
    pub digest: String,
}

/// Reads the file that corresponds to a target.
///
/// # Errors
///
/// Returns an error if instructions cannot be added to the file.
pub(super) fn file(app: &AppContext, target: MemoryTarget) -> Result<TargetFile, String> {
    let given = match target {
        MemoryTarget::Project => project_instruction_file(&app.workspace),
        MemoryTarget::Personal => app.directories.project_dir(&app.workspace).join(NAME),
        MemoryTarget::Global => app.directories.config.join(NAME),
    };
    let is_of_project = target == MemoryTarget::Project;
    let shown = match given.strip_prefix(&app.workspace).ok().filter(|_| is_of_project) {
        Some(below) => below.display().to_string(),
        None => crate::text::abbreviate_home(&given, &app.home),
    };
    let is_link = given.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    if is_of_project && is_link {
        return Err(format!("`{shown}` is a symlink; edit the file that it points to"));
    }
    let path = real_path(&given);
    let before = match read(&path, INSTRUCTION_BYTES) {
        Ok(bytes) => Some(String::from_utf8(bytes).map_err(|_| format!("`{shown}` is not UTF-8 text"))?),
        Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(ReadError::TooLarge { .. }) => return Err(too_long(&shown)),
        Err(ReadError::Io(error)) => return Err(format!("cannot read `{shown}`: {error}")),
    };
    let project_name = is_of_project.then(|| shown.clone());
    Ok(TargetFile { path, shown, before, project_name })
}

fn too_long(shown: &str) -> String {
    format!(
        "`{shown}` has reached the size limit of an instruction file ({} KiB); shorten the file first",
        INSTRUCTION_BYTES >> 10
    )
}

/// Resolves symlinks in a path. If the file does not exist, resolves those in its directory's path.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let name = path.file_name().unwrap_or_default();
        let existing = path.ancestors().skip(1).find_map(|parent| Some((parent, parent.canonicalize().ok()?)));
        match existing {
            Some((parent, real)) => path.strip_prefix(parent).map_or_else(|_| real.join(name), |below| real.join(below)),
            None => path.to_owned(),
        }
    })
}

impl TargetFile {
    pub(super) fn pre_image(&self) -> PreImage {
        self.before.as_ref().map_or(PreImage::Absent, |text| PreImage::hash(text.as_bytes()))
    }

    /// Returns the content of the file, or an empty string if the file does not exist.
    pub(super) fn text(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    /// Plans the addition of an instruction.
    pub(super) fn plan(self, instruction: &str) -> Result<PlannedInstruction, String> {
        let Added { text: after, added } = document::add(self.text(), instruction);
        if after.len() as u64 > INSTRUCTION_BYTES {
            return Err(too_long(&self.shown));
        }
        let old = if self.before.is_some() { format!("a/{}", self.shown) } else { "/dev/null".to_owned() };
        let diff = FileDiff::new(&old, &format!("b/{}", self.shown), line_hunks(self.text(), &after)).to_string();
        let digest = {
            let mut hasher = blake3::Hasher::new();
            for part in [&self.path.to_string_lossy() as &str, &hash_or_none(self.before.as_deref()), &hash(&after)] {
                hasher.update(part.as_bytes());
                hasher.update(b"\0");
            }
            hasher.finalize().to_hex().chars().take(16).collect()
        };
        Ok(PlannedInstruction { file: self, after, added, diff, digest })
    }
}

impl PlannedInstruction {
    /// Returns the change in its stored form.
    pub(super) fn change(&self, is_trusted: bool) -> Change {
        Change {
            file: self.file.path.clone(),
            before: self.file.before.as_deref().map(hash),
            after: hash(&self.after),
            added: self.added.clone(),
            trusted_name: self.file.project_name.clone().filter(|_| is_trusted),
        }
    }
}

/// Returns the hash of the text.
pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn hash_or_none(text: Option<&str>) -> String {
    text.map_or_else(|| "none".to_owned(), hash)
}

/// Returns a proposal for display, including the diff against the current file.
pub(super) fn show(app: &AppContext, proposal: &OpenProposal) -> MemoryProposal {
    let planned = file(app, proposal.target).and_then(|file| file.plan(&proposal.text));
    let (shown, diff, digest, problem) = match planned {
        Ok(planned) => (planned.file.shown, planned.diff, planned.digest, None),
        Err(problem) => (proposal.target.as_str().to_owned(), String::new(), String::new(), Some(problem)),
    };
    MemoryProposal {
        id: proposal.id.clone(),
        text: proposal.text.clone(),
        target: proposal.target,
        file: shown,
        source: proposal.source,
        reason: proposal.reason.clone(),
        said: proposal.said.clone(),
        created: proposal.created,
        diff,
        digest,
        problem,
    }
}
