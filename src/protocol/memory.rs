//! Memory: proposals for instruction files, which change nothing until the user applies them.

use serde::{Deserialize, Serialize};

/// Name of the tool that the model uses for a proposal.
pub const SUGGEST_MEMORY: &str = "SuggestMemory";

/// Instruction file that a proposal would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryTarget {
    /// The instruction file in the workspace, shared by everyone who works on the project.
    Project,
    /// The user's own file for this workspace, stored outside the workspace.
    Personal,
    /// The user's file for all projects.
    Global,
}

impl MemoryTarget {
    pub const ALL: [Self; 3] = [Self::Project, Self::Personal, Self::Global];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Personal => "personal",
            Self::Global => "global",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.as_str() == name)
    }

    /// Returns the next target in the list of all targets; after the last one, the first.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Project => Self::Personal,
            Self::Personal => Self::Global,
            Self::Global => Self::Project,
        }
    }
}

/// Source of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemorySource {
    /// The model suggested it.
    Model,
    /// The user repeated the instruction in several tasks.
    Repeated,
    /// The user added it.
    User,
}

impl MemorySource {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Model => "suggested by the model",
            Self::Repeated => "found in your prompts",
            Self::User => "added by you",
        }
    }
}

/// Sentence from a prompt, with the time of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryQuote {
    pub time: jiff::Timestamp,
    pub text: String,
}

/// Proposal as the user sees it: the change to a file, and the source of the instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryProposal {
    /// ID: 8 hexadecimal digits, always the same for an instruction and its target.
    pub id: String,
    /// The instruction, on one line.
    pub text: String,
    pub target: MemoryTarget,
    /// File that would change, as displayed to users.
    pub file: String,
    pub source: MemorySource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Prompts that contain the instruction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<MemoryQuote>,
    pub created: jiff::Timestamp,
    /// Unified diff that adds the instruction to the current file.
    pub diff: String,
    /// Digest of the file before and after the change. Applying the proposal requires the digest of the diff that was
    /// shown.
    pub digest: String,
    /// Reason why the proposal cannot be applied now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Request about the proposals of the workspace. The response always lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum MemoryRequest {
    /// List the proposals, after a search for instructions that the user repeats.
    List,
    /// Apply a proposal. `digest`: the digest of the diff that the user saw.
    Apply { id: String, digest: String },
    Edit {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<MemoryTarget>,
    },
    /// Drop a proposal permanently.
    Drop { id: String },
    /// Add a proposal by the user.
    Add { text: String, target: MemoryTarget },
}
