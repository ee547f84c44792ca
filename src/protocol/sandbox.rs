//! Sandbox reports: how a command is restricted, which access was blocked, and what a preview changed.

use super::{CallId, format_count};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Level of sandboxing that this system supports, from none to previews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxTier {
    /// No sandbox. Commands can do whatever the user can do.
    #[default]
    Bare,
    /// Landlock and seccomp, without namespaces.
    LandlockOnly,
    /// Namespaces, which make protected paths inaccessible. Writes take effect immediately.
    Guarded,
    /// Namespaces, as in `Guarded`, with the additional option of directing writes to a copy first.
    Preview,
}

impl SandboxTier {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::LandlockOnly => "landlock only",
            Self::Guarded => "guarded",
            Self::Preview => "preview",
        }
    }

    /// Returns whether the sandbox is strong enough for policy rules to allow commands on the strength of it.
    pub fn is_enforcing(self) -> bool {
        self >= Self::Guarded
    }
}

/// Access to something outside the sandbox that was either blocked, or granted by an approval for a single run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SandboxAccess {
    /// Connection to a host through aye's proxy.
    Host { host: String, port: u16 },
    /// Network access to an unknown host.
    Network,
    /// Write access to this path and everything below it.
    Write { path: String },
    /// Read access to this path and everything below it.
    Read {
        path: String,
        /// Whether the command tried to delete or rename the path. It needs to see the path to do so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        removes: bool,
    },
}

impl SandboxAccess {
    /// Returns whether this is network access.
    pub fn is_network(&self) -> bool {
        match self {
            Self::Host { .. } | Self::Network => true,
            Self::Write { .. } | Self::Read { .. } => false,
        }
    }
}

impl fmt::Display for SandboxAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, port } => write!(f, "{host}:{port}"),
            Self::Network => f.write_str("the network"),
            Self::Write { path } => write!(f, "writing `{path}`"),
            Self::Read { path, removes: false } => write!(f, "reading `{path}`"),
            Self::Read { path, removes: true } => write!(f, "deleting or renaming `{path}`"),
        }
    }
}

/// Whether a command can be previewed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "preview", rename_all = "snake_case")]
pub enum PreviewOffer {
    /// The call is not a command.
    #[default]
    None,
    Possible,
    /// The command cannot be previewed, for this reason.
    Impossible {
        reason: String,
    },
}

/// Effects of a command that ran in a copy-on-write layer. They have not been applied yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// How the command ended, such as `exit 0` or `killed after 300 s`.
    pub ended: String,
    /// Output as the model will see it after approval.
    pub output: String,
    /// Affected files: first changed, linked and deleted files, then created ones.
    pub files: Vec<FileEffect>,
    /// Folders that contain many new files, which are listed per folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<CreatedFiles>,
    /// Number of further paths that exceed the listing limit. If it is not 0, the effects cannot be approved.
    pub more_files: u64,
    /// Directories that contain build output. Changes in them are applied without approval, or the command wrote them
    /// directly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CountedEffects>,
    /// Effects that are never applied, whatever the decision.
    pub refused: Vec<RefusedEffect>,
    /// Access that the sandbox blocked.
    pub denied: Vec<SandboxAccess>,
    /// Hexadecimal digest of all effects and the output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Reason why these effects cannot be applied: files were changed after the command ran, so it must be run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
}

impl Effects {
    /// Returns whether approval would leave all files unchanged.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.groups.is_empty() && self.counted.is_empty() && self.more_files == 0
    }

    /// Returns whether approval would change nothing other than build output.
    pub fn is_build_output(&self) -> bool {
        self.files.is_empty() && self.groups.is_empty() && self.more_files == 0
    }

    /// Returns whether approval would change nothing other than build output and the modification times of files.
    pub fn changes_no_content(&self) -> bool {
        self.files.iter().all(FileEffect::is_only_touched) && self.groups.is_empty() && self.more_files == 0
    }

    /// Returns the reason why incompletely listed effects cannot be approved, or `None` if the list is complete.
    pub fn unlisted_reason(&self) -> Option<String> {
        let more = self.more_files;
        (more > 0)
            .then(|| format!("{more} more changed paths are not listed, so the changes cannot be applied; split up the command"))
    }

    /// Returns the reason why the effects cannot be approved, which is either a conflict or an incomplete list. Returns
    /// `None` if they can be.
    pub fn approval_obstacle(&self) -> Option<String> {
        self.conflict.clone().or_else(|| self.unlisted_reason())
    }

    /// Returns the listed paths that can be left out: files first, followed by folders.
    pub fn listed_paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.path.as_str()).chain(self.groups.iter().map(|group| group.folder.as_str()))
    }

    /// Summarizes the changed paths on one line, such as `created a.rs, deleted b.rs; build output in target/: 12
    /// files`.
    pub fn summary(&self) -> String {
        const MAX_NAMED: usize = 3;
        let files = self.files.iter().map(|file| format!("{} {}", file.kind.verb(), file.path));
        let group = |group: &CreatedFiles| format!("created {} in {}", file_count(group.files.len() as u64), group.folder);
        let all = self.files.len() + self.groups.len();
        let mut named = files.chain(self.groups.iter().map(group)).take(MAX_NAMED).collect::<Vec<_>>().join(", ");
        if all > MAX_NAMED {
            named = format!("{named} and {} more", all - MAX_NAMED);
        }
        let build = |one: &CountedEffects| {
            format!("build output in {}/: {}", one.path, file_count(one.created + one.changed + one.deleted))
        };
        let parts = Some(named).filter(|named| !named.is_empty()).into_iter().chain(self.counted.iter().map(build));
        parts.collect::<Vec<_>>().join("; ")
    }

    /// Returns the number of changed paths, including those that are not listed.
    pub fn paths(&self) -> u64 {
        let grouped: u64 = self.groups.iter().map(|group| group.files.len() as u64).sum();
        let counted: u64 = self.counted.iter().map(|one| one.created + one.changed + one.deleted).sum();
        self.files.len() as u64 + grouped + self.more_files + counted
    }
}

fn file_count(files: u64) -> String {
    format_count(files, "file", "files")
}

/// Effect of a command on a single path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEffect {
    /// Path, relative to the workspace if inside it.
    pub path: String,
    pub kind: EffectKind,
    /// Details that are not visible in the diff, such as `set-uid bit dropped` or `hard link to a`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Note on a regular file of which only the modification time changes.
pub(crate) const ONLY_TOUCHED: &str = "only the modification time changes";

impl FileEffect {
    /// Returns whether only the modification time of a regular file changes.
    pub fn is_only_touched(&self) -> bool {
        matches!(self.kind, EffectKind::ModeChanged { from, to } if from == to) && self.notes == [ONLY_TOUCHED]
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EffectKind {
    Created {
        bytes: u64,
        binary: bool,
    },
    Changed {
        bytes_before: u64,
        bytes_after: u64,
        binary: bool,
    },
    Deleted {
        bytes: u64,
        binary: bool,
    },
    /// Moved, possibly with changes to its content.
    Renamed {
        from: String,
        changed: bool,
    },
    /// Only the permission bits changed. The new mode is a number, such as the value of octal 0644.
    ModeChanged {
        from: u32,
        to: u32,
    },
    DirectoryCreated,
    /// Directory that was deleted together with its content.
    DirectoryDeleted {
        files: u64,
    },
    /// Symlink that was created or given a new target.
    Linked {
        to: String,
    },
}

impl EffectKind {
    /// Returns the verb that describes the effect, such as `created` or `deleted`.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Created { .. } | Self::DirectoryCreated => "created",
            Self::Changed { .. } => "changed",
            Self::Deleted { .. } | Self::DirectoryDeleted { .. } => "deleted",
            Self::Renamed { .. } => "renamed",
            Self::ModeChanged { from, to } if from == to => "touched",
            Self::ModeChanged { .. } => "changed the mode of",
            Self::Linked { .. } => "linked",
        }
    }
}

/// New regular files in a single folder. Files are listed separately instead if they are links, have notes, or run code
/// when the folder is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedFiles {
    /// Folder path, such as `node_modules/`.
    pub folder: String,
    /// Paths of the new files in the folder.
    pub files: Vec<String>,
    pub bytes: u64,
    /// Whether git ignores the folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
}

/// Changes in a directory that contains build output or, in journals written by earlier versions, that git ignores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CountedEffects {
    pub path: String,
    pub created: u64,
    pub changed: u64,
    pub deleted: u64,
    /// Total size in bytes of the new and changed files.
    pub bytes: u64,
    /// Whether the command wrote to the directory directly. These changes remain, whatever the decision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// Effect that will not be applied, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedEffect {
    pub path: String,
    pub reason: String,
}

/// Command that runs while the agent works: a shell session or a background command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningCommand {
    /// ID that the tools use for the command, such as `s1`.
    pub id: String,
    pub line: String,
    /// Tool call that started the command.
    pub tool_call_id: Option<CallId>,
    pub state: RunningState,
    /// Time at which the command started.
    pub since: jiff::Timestamp,
    /// Last line that the command printed.
    pub last_line: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RunningState {
    Running,
    /// The command exited with this status, such as `exit 0` or `killed by SIGKILL`.
    Ended {
        how: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allow_verdict_relies_only_on_sandbox_tiers_with_namespaces() {
        let tiers = [SandboxTier::Bare, SandboxTier::LandlockOnly, SandboxTier::Guarded, SandboxTier::Preview];
        assert_eq!(tiers.map(SandboxTier::is_enforcing), [false, false, true, true]);
        assert!(tiers.is_sorted());
    }
}
