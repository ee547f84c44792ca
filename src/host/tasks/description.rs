//! Stored description of a task: its prompt, its copy of the workspace and its options.

use crate::host::options::{Common, Trust};
use crate::protocol::Mode;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Version of the format.
pub(crate) const VERSION: u32 = 1;

/// Facts about a task that do not change after its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskDescription {
    pub version: u32,
    pub prompt: String,
    /// Canonical path of the workspace.
    pub workspace: PathBuf,
    pub created: jiff::Timestamp,
    pub copy: CopyKind,
    pub options: StartOptions,
    /// Command that runs in the copy after the model has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// Kind of the workspace copy that a task changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum CopyKind {
    /// A copy-on-write layer over the workspace.
    Layer,
    /// A git worktree.
    Worktree {
        /// Directory of the worktree.
        directory: PathBuf,
        /// Directory in the worktree that corresponds to the workspace.
        workspace: PathBuf,
        branch: String,
        /// Initial commit of the worktree.
        base: String,
    },
}

/// Command-line options with which a task was started. They also apply when it is resumed.
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

/// Changing facts about a task that are not in its journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TaskNotes {
    /// True after `aye task stop`, until the task is resumed.
    pub is_stopped: bool,
    /// True if the last run ended because of a decision that the journal does not mark as pending.
    pub needs_user: bool,
    pub check: Option<CheckResult>,
    /// Contents that `aye task keep` wrote or was about to write, by path, as SHA-256 digests with modes. The task is
    /// considered to have seen them.
    pub applied: BTreeMap<String, BTreeSet<String>>,
}

/// Result of the check command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckResult {
    pub command: String,
    /// Exit code; absent if the command did not finish.
    pub exit_code: Option<i32>,
}

impl StartOptions {
    /// Returns the options of this command line that apply to the task.
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

    /// Converts these options to command-line options. Those of the current command line take precedence.
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
    /// Formats the result as `passed`, `failed (exit 101)` or `did not finish`.
    pub(crate) fn describe(&self) -> String {
        match self.exit_code {
            Some(0) => "passed".to_owned(),
            Some(code) => format!("failed (exit {code})"),
            None => "did not finish".to_owned(),
        }
    }
}
