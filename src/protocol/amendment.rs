//! User amendments to a proposal: selected hunks or edited text.

use serde::{Deserialize, Serialize};

/// Ways in which the user may change a proposal before approving it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Amendable {
    /// Hunks of the proposed file change, in diff order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// Command effects that can be left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectPart>,
    /// Files whose full text can be edited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Editable command line, as the model wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Leading commands of the line, if running only these is less risky than running the whole line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstParts>,
    /// Whether approval would grant network access that the command can run without.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
    /// Whether the command can be run once outside the sandbox, after a further approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unsandboxed: bool,
    /// Whether the user has changed the model's proposal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// Whether the change was replanned because its files had changed on disk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renewed: bool,
}

impl Amendable {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Hunk of a proposed change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// Index of the hunk's file in `Amendable::files`. Absent if that file cannot be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<usize>,
    /// Lines of the proposed file that the hunk replaces, as a half-open, 0-based range `first..end`.
    pub first: usize,
    pub end: usize,
    /// Enclosing source code item, such as `greet()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Reason why this hunk cannot be selected on its own. Absent if it can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

/// Command effect that can be left out: a path, or one of several hunks in a text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectPart {
    /// Path of a file or folder, as in `Effects`.
    pub path: String,
    /// Index of the hunk in the file. Absent if the effect is the whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<usize>,
    /// Enclosing source code item, such as `greet()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hunks of this effect in the combined diff of all files, as a half-open, 0-based range `first..end`.
    pub first: usize,
    pub end: usize,
}

/// Path that the user left out of a command's effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscardedEffect {
    /// Path of a file or folder, as in `Effects`.
    pub path: String,
    /// Indexes of the hunks that were left out. Empty if the whole path was left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<usize>,
}

/// Leading commands of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstParts {
    pub count: usize,
    pub line: String,
}

/// Choice made for one hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum HunkChoice {
    Taken,
    /// Keep the existing lines.
    Left,
    /// Replace the proposed lines with these, each terminated by an LF.
    Edited {
        text: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Amendment {
    /// Approve a change, with one choice per hunk in diff order.
    Hunks { hunks: Vec<HunkChoice> },
    /// Approve the effects of a command except the discarded ones. `digest` is the digest of all effects.
    Effects { digest: String, discarded: Vec<DiscardedEffect> },
    /// Replace the text of one file. The edited proposal is then shown for approval.
    File { file: usize, text: String },
    /// Replace the command line. The policy judges the new line, and the user is asked to approve it.
    Command { line: String },
    /// Run only the leading commands of the line, after the policy has judged them again.
    First { line: String },
    /// Approve the command, but run it without network access.
    Offline,
    /// Run the command once outside the sandbox. The unsandboxed run is shown for approval first.
    Unsandboxed,
    /// Run the command in the background, directly in the workspace instead of in a copy. The run is shown for approval
    /// first.
    Background,
}

impl Amendment {
    /// Returns whether the amendment is itself an approval, because the user has already seen the complete result.
    pub fn is_yes(&self) -> bool {
        match self {
            Self::Hunks { .. } | Self::Effects { .. } | Self::Offline => true,
            Self::File { .. } | Self::Command { .. } | Self::First { .. } | Self::Unsandboxed | Self::Background => false,
        }
    }

    /// Returns whether a different command line will run.
    pub fn is_another_line(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::First { .. })
    }

    /// Returns whether the user must approve the amended call even if a rule would allow it.
    pub fn needs_approval(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Command { .. } | Self::Unsandboxed | Self::Background)
    }
}
