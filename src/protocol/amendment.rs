//! Amendments of a proposal by the user: a part of it, or their own text.

use serde::{Deserialize, Serialize};

/// How a person may change what is asked about before they say yes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Amendable {
    /// Of a change of files: its hunks, in the order of the diff.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// The files whose whole text can be changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The line of a command that can be changed, as the model wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its first commands alone, where they are less risky than all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstParts>,
    /// A yes gives it the network, and it can run without.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offline: bool,
    /// It is not what the model proposed: the person changed it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// What it was made for changed on disk meanwhile; this is made anew.
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
    /// Its place among `Amendable::files`, where its file is one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<usize>,
    /// The lines of that file as proposed that are in the place of others, from 0; the last is not among them.
    pub first: usize,
    pub end: usize,
    /// What it stands in: `greet()`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why it goes with all the others, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

/// The first commands of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstParts {
    pub count: usize,
    pub line: String,
}

/// What becomes of one hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum HunkChoice {
    Taken,
    /// Those lines stay as they are.
    Left,
    /// These lines come in the place of what was proposed, each with the LF that ends it.
    Edited {
        text: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Amendment {
    /// A yes to these hunks of a change; one for each, in their order.
    Hunks { hunks: Vec<HunkChoice> },
    /// Another text for one of the files: it is asked about.
    File { file: usize, text: String },
    /// Another line for a command: it is judged and asked about.
    Command { line: String },
    /// The first commands of a line: they are judged.
    First { line: String },
    /// A yes to a command without the network.
    Offline,
}

impl Amendment {
    /// Whether it is a yes to what comes of it: the person has seen all of that.
    pub fn is_yes(&self) -> bool {
        match self {
            Self::Hunks { .. } | Self::Offline => true,
            Self::File { .. } | Self::Command { .. } | Self::First { .. } => false,
        }
    }

    /// Whether another line runs than the one that was proposed.
    pub fn is_another_line(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::First { .. })
    }

    /// Whether it is asked about, also where a rule would let it pass.
    pub fn asks(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Command { .. })
    }
}
