//! Amendments of a proposal by the user: selected hunks or edited text.

use serde::{Deserialize, Serialize};

/// Ways in which the user may change a proposal before approving it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Amendable {
    /// Hunks of a file change, in the order of the diff.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// Parts of a command's effects that can be left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectPart>,
    /// Files whose whole text can be edited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Command line that can be edited, as the model wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// First commands of the line, if they are less risky than the whole line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstParts>,
    /// Whether approval grants network access that the command can do without.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
    /// Whether the command can run once outside the sandbox after another approval.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unsandboxed: bool,
    /// Whether the user has changed the model's proposal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// Whether the change was planned again because its files had changed on disk.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub renewed: bool,
}

impl Amendable {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One hunk of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// Index of the hunk's file in `Amendable::files`, if that file can be edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<usize>,
    /// Lines that the hunk replaces in the proposed file, counted from 0: the first one, and the one after the last.
    pub first: usize,
    pub end: usize,
    /// Enclosing item of the source code: `greet()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Reason why this hunk cannot be selected on its own; absent if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

/// Part of a command's effects that can be left out: a path, or one of several hunks of a text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectPart {
    /// Path of a file or folder, as in `Effects`.
    pub path: String,
    /// Index of the hunk in the file; absent if the part is the whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<usize>,
    /// Enclosing item of the source code: `greet()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Range of the part's hunks in the diff of all files: the first hunk, and the one after the last.
    pub first: usize,
    pub end: usize,
}

/// Path that the user left out of a command's effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscardedEffect {
    /// Path of a file or folder, as in `Effects`.
    pub path: String,
    /// Indexes of the hunks that are left out; empty if the whole path is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<usize>,
}

/// First commands of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstParts {
    pub count: usize,
    pub line: String,
}

/// Choice for one hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum HunkChoice {
    Taken,
    /// Leave the existing lines unchanged.
    Left,
    /// Write these lines instead of the proposed ones, each ended by an LF.
    Edited {
        text: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Amendment {
    /// Approve a change with one choice for each hunk, in order.
    Hunks { hunks: Vec<HunkChoice> },
    /// Approve the effects of a command except some of them. `digest`: the digest of all effects.
    Effects { digest: String, discarded: Vec<DiscardedEffect> },
    /// Edit the text of one file. The edit is shown for approval.
    File { file: usize, text: String },
    /// Edit the command line. The new line is judged and shown for approval.
    Command { line: String },
    /// Run only the first commands of a line. They are judged again.
    First { line: String },
    /// Approve a command without network access.
    Offline,
    /// Run the command once outside the sandbox. It is shown for approval.
    Unsandboxed,
    /// Run the command in the background, in the workspace instead of a copy. It is shown for approval.
    Background,
}

impl Amendment {
    /// Returns whether the amendment also approves its result, because the user has seen the whole result.
    pub fn is_yes(&self) -> bool {
        match self {
            Self::Hunks { .. } | Self::Effects { .. } | Self::Offline => true,
            Self::File { .. } | Self::Command { .. } | Self::First { .. } | Self::Unsandboxed | Self::Background => false,
        }
    }

    /// Returns whether the amendment changes the command line that runs.
    pub fn is_another_line(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::First { .. })
    }

    /// Returns whether the amendment requires approval even if a rule would allow the result.
    pub fn needs_approval(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Command { .. } | Self::Unsandboxed | Self::Background)
    }
}
