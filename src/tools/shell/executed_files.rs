//! Files in the workspace and in pinned skills that a command runs, in the state in which they were when the call was
//! checked. If their content changes, the command is no longer the same.

use super::file_hashes::FileHashes;
use crate::policy::run_files;
use crate::protocol::{ErrorCode, Target, ToolError};
use crate::sys::file::{FileStamp, PreImage, ReadError, read};
use crate::sys::path::{DirectoryIdentity, PathKind, identity, resolve};
use crate::tools::settings::ToolSettings;
use std::path::{Path, PathBuf};

/// Size in bytes above which a file is compared by its metadata.
const MAX_READ_BYTES: u64 = 8 << 20;

/// Working directory of a command line, and the files that the line runs.
pub(in crate::tools) struct PinnedFiles {
    directory: Option<DirectoryIdentity>,
    files: Vec<File>,
    /// Files of a custom tool, which may be anywhere on disk.
    tool: Option<FileHashes>,
}

#[derive(PartialEq, Eq)]
struct File {
    given: String,
    /// Real path at the time of the check. Symlinks may change in the meantime.
    real: Option<PathBuf>,
    content: Content,
}

#[derive(PartialEq, Eq)]
enum Content {
    Is(PreImage),
    Large(FileStamp),
    /// The file is outside the workspace or cannot be read.
    NotLookedAt,
}

impl PinnedFiles {
    pub(in crate::tools) fn for_line(line: &str, cwd: &Target, settings: &ToolSettings) -> Self {
        let files = run_files(line).into_iter().map(|given| File::inspect(given, cwd, settings)).collect();
        Self { directory: identity(&cwd.real).ok(), files, tool: None }
    }

    /// Creates the record for a custom tool, whose files are known.
    pub(in crate::tools) fn for_tool(cwd: &Target, tool: FileHashes) -> Self {
        Self { directory: identity(&cwd.real).ok(), files: Vec::new(), tool: Some(tool) }
    }

    /// Returns those of the files that are in the workspace or in pinned skills.
    pub(in crate::tools) fn files(&self) -> Vec<PathBuf> {
        self.files.iter().filter(|file| file.content != Content::NotLookedAt).filter_map(|file| file.real.clone()).collect()
    }

    /// Checks, as late as possible, that all files are still unchanged.
    pub(in crate::tools) fn check_unchanged(self, cwd: &Target, settings: &ToolSettings) -> Result<(), ToolError> {
        if identity(&cwd.real).ok() != self.directory {
            let message = format!(
                "`{}` is a different directory than when the command was checked, so nothing was run; try again",
                cwd.given
            );
            return Err(ToolError::new(ErrorCode::Conflict, message));
        }
        if let Some(tool) = &self.tool {
            tool.check_unchanged()?;
        }
        for file in self.files {
            if File::inspect(file.given.clone(), cwd, settings) != file {
                let message = format!("`{}` changed since the command was checked, so nothing was run; try again", file.given);
                return Err(ToolError::new(ErrorCode::Conflict, message));
            }
        }
        Ok(())
    }
}

impl File {
    fn inspect(given: String, cwd: &Target, settings: &ToolSettings) -> Self {
        let found = resolve(&given, &cwd.real, settings.home.as_deref()).ok();
        let content = match &found {
            Some(found) if found.real.starts_with(&settings.workspace) || settings.session.skills.has_pinned(&found.real) => {
                match found.kind {
                    PathKind::Missing => Content::Is(PreImage::Absent),
                    PathKind::File { .. } => Content::read(&found.real),
                    PathKind::Directory | PathKind::Special | PathKind::Link { .. } => Content::NotLookedAt,
                }
            }
            _ => Content::NotLookedAt,
        };
        Self { given, real: found.map(|found| found.real), content }
    }
}

impl Content {
    fn read(real: &Path) -> Self {
        match read(real, MAX_READ_BYTES) {
            Ok(content) => Self::Is(PreImage::hash(&content)),
            Err(ReadError::TooLarge { .. }) => match std::fs::symlink_metadata(real) {
                Ok(data) => Self::Large(FileStamp::from_metadata(&data)),
                Err(_) => Self::NotLookedAt,
            },
            Err(ReadError::Io(_)) => Self::NotLookedAt,
        }
    }
}
