//! The header of a patch file.

use super::{MAX_LISTED, VERSION};
use crate::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Modes that git uses for regular files.
const PLAIN: &str = "100644";
const EXECUTABLE: &str = "100755";

/// Everything about the changes except their lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PatchHeader {
    pub version: u32,
    /// Version of aye that wrote the file.
    pub aye: String,
    pub policy: PolicyStamp,
    /// Changed files, ordered by path.
    pub files: Vec<FileEntry>,
    /// Changes that the patch omits.
    pub left_out: Vec<OmittedPath>,
    /// Number of omitted changes that are not listed.
    pub more_left_out: usize,
    /// Decisions on the task's calls, included for information. They grant no permissions.
    pub verdicts: Vec<LoggedVerdict>,
    pub more_verdicts: usize,
}

/// Policy that applied while the task ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PolicyStamp {
    /// Hash of the policy files.
    pub hash: String,
    pub name: String,
    pub mode: String,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FileEntry {
    /// Path relative to the workspace.
    pub path: String,
    /// State before the task. Absent if the file is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<FileState>,
    /// State after the task. Absent if the file was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<FileState>,
}

/// State of a regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FileState {
    pub sha256: String,
    /// Mode in git's notation: `100644` or `100755`.
    pub mode: String,
}

/// A changed path that the patch omits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OmittedPath {
    pub path: String,
    pub why: String,
}

/// The decision on one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LoggedVerdict {
    pub tool: String,
    pub summary: String,
    /// `allow` or `deny`.
    pub verdict: String,
    /// Rule or user that made the decision.
    pub by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl PatchHeader {
    /// Creates the header of a patch file. Long lists are truncated, and the entries that this removes are counted.
    pub(crate) fn new(
        aye: &str,
        policy: PolicyStamp,
        files: Vec<FileEntry>,
        mut left_out: Vec<OmittedPath>,
        mut verdicts: Vec<LoggedVerdict>,
    ) -> Self {
        let (more_left_out, more_verdicts) =
            (left_out.len().saturating_sub(MAX_LISTED), verdicts.len().saturating_sub(MAX_LISTED));
        left_out.truncate(MAX_LISTED);
        verdicts.truncate(MAX_LISTED);
        let aye = aye.to_owned();
        Self { version: VERSION, aye, policy, files, left_out, more_left_out, verdicts, more_verdicts }
    }
}

impl FileEntry {
    /// Checks that the states are well-formed and that they differ.
    pub(super) fn check(&self) -> Result<(), String> {
        for state in self.base.iter().chain(&self.result) {
            let is_digest =
                state.sha256.len() == 64 && state.sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if !is_digest {
                return Err(format!("`{}` is not a SHA-256 digest", state.sha256));
            }
            if state.mode != PLAIN && state.mode != EXECUTABLE {
                return Err(format!("the mode {} is not supported: a patch file contains only regular files", state.mode));
            }
        }
        if self.base == self.result {
            return Err("the old and the new state are the same".to_owned());
        }
        Ok(())
    }
}

impl FileState {
    pub(crate) fn new(content: &[u8], is_executable: bool) -> Self {
        let mode = if is_executable { EXECUTABLE } else { PLAIN };
        Self { sha256: Self::digest(content), mode: mode.to_owned() }
    }

    /// Returns the SHA-256 digest of the content as hexadecimal digits.
    pub(crate) fn digest(content: &[u8]) -> String {
        hex(&Sha256::digest(content))
    }

    pub(crate) fn is_executable(&self) -> bool {
        self.mode == EXECUTABLE
    }
}
