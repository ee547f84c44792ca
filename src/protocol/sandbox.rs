//! Sandbox reports: the confinement of a command, what was blocked, and the effects of a preview.

use super::CallId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How well this system can hold a command, from nothing to a view in which it may do as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxTier {
    /// Nothing: the command can do what the person can do.
    #[default]
    Bare,
    /// Landlock and seccomp, no namespaces.
    LandlockOnly,
    /// Namespaces: what it may not touch is out of its reach; what it writes is real.
    Guarded,
    /// The same, and what it writes can go to a copy first.
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

    /// Whether an allow of the policy may rely on it.
    pub fn holds(self) -> bool {
        self >= Self::Guarded
    }
}

/// Something outside the sandbox: what a command was kept from, or what a yes opens for one run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outside {
    /// A host, reached through aye's own proxy.
    Host { host: String, port: u16 },
    /// The network, where no host is known.
    Network,
    /// Writing at this place and below it.
    Write { path: String },
    /// Reading this place and what is below it.
    Read { path: String },
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, port } => write!(f, "{host}:{port}"),
            Self::Network => f.write_str("the network"),
            Self::Write { path } => write!(f, "writing `{path}`"),
            Self::Read { path } => write!(f, "reading `{path}`"),
        }
    }
}

/// Whether the effects of a command can be shown before they happen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "preview", rename_all = "snake_case")]
pub enum PreviewOffer {
    /// It is not a command.
    #[default]
    None,
    Possible,
    /// And why not, in words for the person.
    Impossible {
        reason: String,
    },
}

/// What a command did in its copy-on-write view. Nothing of it has happened yet.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// `exit 0`, `killed after 300 s`.
    pub ended: String,
    /// What it printed, as the model will see it after the yes.
    pub output: String,
    /// What is changed, linked or deleted comes before what is created.
    pub files: Vec<FileEffect>,
    /// Folders with many new files, each of which is listed in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<CreatedFiles>,
    /// Paths that are listed nowhere because there are too many. Nothing can be approved as long as there is one.
    pub more_files: u64,
    /// Directories with build output, which is kept without an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<CountedEffects>,
    /// What is not kept, whatever is answered.
    pub refused: Vec<RefusedEffect>,
    /// What it tried outside and was kept from.
    pub denied: Vec<Outside>,
}

impl Effects {
    /// Whether a yes changes no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.groups.is_empty() && self.counted.is_empty() && self.more_files == 0
    }

    /// Whether no file would change but build output.
    pub fn is_build_output(&self) -> bool {
        self.files.is_empty() && self.groups.is_empty() && self.more_files == 0
    }

    /// Why it cannot be approved: not all of it is listed.
    pub fn unlisted(&self) -> Option<String> {
        let more = self.more_files;
        (more > 0).then(|| {
            format!(
                "{more} changed paths are beyond the listing limit, so the changes cannot be applied; run the command in parts"
            )
        })
    }

    /// All paths that would be another, listed or not.
    pub fn paths(&self) -> u64 {
        let grouped: u64 = self.groups.iter().map(|group| group.files.len() as u64).sum();
        let counted: u64 = self.counted.iter().map(|one| one.created + one.changed + one.deleted).sum();
        self.files.len() as u64 + grouped + self.more_files + counted
    }
}

/// One path that would be another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEffect {
    /// Relative to the workspace where it lies in it.
    pub path: String,
    pub kind: EffectKind,
    /// What the diff does not show: `set-uid bit dropped`, `hard link to a`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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
    /// Moved, and perhaps changed on the way.
    Renamed {
        from: String,
        changed: bool,
    },
    /// Only the permission bits: `0644` as a number.
    ModeChanged {
        from: u32,
        to: u32,
    },
    DirectoryCreated,
    /// With all that was in it.
    DirectoryDeleted {
        files: u64,
    },
    /// A symbolic link, new or pointing elsewhere.
    Linked {
        to: String,
    },
}

impl EffectKind {
    /// `created`, `deleted`.
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

/// New regular files of one folder: none that runs code when the folder is opened, no link, nothing with a note of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedFiles {
    /// `node_modules/`
    pub folder: String,
    /// Each by its path below the folder.
    pub files: Vec<String>,
    pub bytes: u64,
    /// Whether git ignores the folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
}

/// What happens below a directory with build output. In the journals of earlier versions: one that git ignores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CountedEffects {
    pub path: String,
    pub created: u64,
    pub changed: u64,
    pub deleted: u64,
    /// Of what is new or changed.
    pub bytes: u64,
}

/// An effect that is not kept, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedEffect {
    pub path: String,
    pub reason: String,
}

/// A command that goes on while the agent works: an interactive session, or one that was put in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningCommand {
    /// `s1`, as the tools name it.
    pub id: String,
    pub line: String,
    /// The call that started it.
    pub tool_call_id: Option<CallId>,
    pub state: RunningState,
    /// When it started.
    pub since: jiff::Timestamp,
    /// The last line it printed.
    pub last_line: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RunningState {
    Running,
    /// `exit 0`, `killed by SIGKILL`.
    Ended {
        how: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allow_relies_on_namespaces_and_on_nothing_less() {
        let tiers = [SandboxTier::Bare, SandboxTier::LandlockOnly, SandboxTier::Guarded, SandboxTier::Preview];
        assert_eq!(tiers.map(SandboxTier::holds), [false, false, true, true]);
        assert!(tiers.is_sorted());
    }
}
