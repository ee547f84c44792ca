//! Stored description of a task, which consists of its prompt, its copy of the workspace and its options.

use crate::host::options::{Common, Trust};
use crate::protocol::Mode;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Version of the description's format.
pub(crate) const VERSION: u32 = 1;

/// Description of a task, which does not change once the task has started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskDescription {
    pub version: u32,
    pub prompt: String,
    /// Canonical path of the session's workspace.
    pub workspace: PathBuf,
    pub created: jiff::Timestamp,
    pub copy: CopyKind,
    pub options: StartOptions,
    /// Command that is run in the copy once the model has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// Kind of copy in which a task makes its changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CopyKind {
    /// A copy-on-write layer over the workspace.
    Layer,
    /// A git worktree.
    Worktree {
        /// Directory that contains the worktree.
        directory: PathBuf,
        /// Directory inside the worktree that corresponds to the workspace.
        workspace: PathBuf,
        branch: String,
        /// Commit from which the worktree was created.
        base: String,
    },
}

/// Command-line options with which a task was started, and which also apply when it is resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StartOptions {
    pub profile: Option<String>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    pub policy: Option<PathBuf>,
    pub trusts_project: bool,
    pub set: Vec<(String, String)>,
    pub max_steps: Option<u32>,
}

/// Information about a task that can change and that is not stored in its journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TaskNotes {
    /// Whether the task was stopped with `aye task stop` and has not been resumed since.
    pub is_stopped: bool,
    /// Whether the last run ended because of a decision that the journal does not list as pending.
    pub needs_user: bool,
    pub check: Option<CheckResult>,
    /// For each path, the content that `aye task keep` has written or was about to write, as SHA-256 digests with file
    /// modes. The task is considered to have seen this content.
    pub applied: BTreeMap<String, BTreeSet<String>>,
}

/// Result of running the check command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckResult {
    pub command: String,
    /// Exit code; absent if the command did not run to completion.
    pub exit_code: Option<i32>,
}

impl StartOptions {
    /// Extracts the options on this command line that apply to the task.
    pub(crate) fn new(common: &Common) -> Self {
        Self {
            profile: common.profile.clone(),
            model: common.model.clone(),
            mode: common.mode,
            policy: common.policy.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            trusts_project: common.trust == Trust::ForThisRun,
            set: common.set.clone(),
            max_steps: common.max_steps,
        }
    }

    /// Combines these options with those on the current command line, which take precedence.
    pub(crate) fn common(&self, current: &Common) -> Common {
        Common {
            directory: None,
            profile: current.profile.clone().or_else(|| self.profile.clone()),
            model: current.model.clone().or_else(|| self.model.clone()),
            mode: current.mode,
            // The user may have chosen another mode since the start.
            fallback_mode: self.mode,
            policy: current.policy.clone().or_else(|| self.policy.clone()),
            add_dirs: Vec::new(),
            trust: if self.trusts_project { Trust::ForThisRun } else { current.trust },
            set: self.set.iter().chain(&current.set).cloned().collect(),
            max_steps: current.max_steps.or(self.max_steps),
            take_over: false,
            color: current.color,
            plain: current.plain,
            verbosity: current.verbosity,
            copy: None,
        }
    }
}

impl CheckResult {
    /// Describes the result as `passed`, `failed (exit 101)` or `did not finish`.
    pub(crate) fn describe(&self) -> String {
        match self.exit_code {
            Some(0) => "passed".to_owned(),
            Some(code) => format!("failed (exit {code})"),
            None => "did not finish".to_owned(),
        }
    }
}
