//! Memory: proposed additions to instruction files, which have no effect until the user applies them.

use serde::{Deserialize, Serialize};

/// Name of the tool with which the model makes a proposal.
pub const SUGGEST_MEMORY: &str = "SuggestMemory";

/// Instruction file that a proposal would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryTarget {
    /// Instruction file in the workspace, shared by everyone who works on the project.
    Project,
    /// The user's own instruction file for this workspace, stored outside it.
    Personal,
    /// The user's instruction file for all projects.
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

    /// Returns the next target in the list of all targets, wrapping around at the end.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Project => Self::Personal,
            Self::Personal => Self::Global,
            Self::Global => Self::Project,
        }
    }
}

/// Origin of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemorySource {
    /// Suggested by the model.
    Model,
    /// Instruction that the user repeated in several tasks.
    Repeated,
    /// Added by the user.
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

/// Sentence quoted from a prompt, with the time of that prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryQuote {
    pub time: jiff::Timestamp,
    pub text: String,
}

/// Proposal as shown to the user: the change to an instruction file, and where the instruction came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryProposal {
    /// 8-digit hexadecimal ID, which is always the same for a given instruction and target.
    pub id: String,
    /// Text of the instruction, on one line.
    pub text: String,
    pub target: MemoryTarget,
    /// File that would change, as shown to the user.
    pub file: String,
    pub source: MemorySource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Sentences from prompts in which the user gave the instruction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<MemoryQuote>,
    pub created: jiff::Timestamp,
    /// Unified diff that adds the instruction to the current file.
    pub diff: String,
    /// Digest of the path and of the content before and after the change. A request to apply the proposal must include
    /// the digest of the diff that the user saw.
    pub digest: String,
    /// Reason why the proposal currently cannot be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Request concerning the workspace's proposals. Every response lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum MemoryRequest {
    /// List the proposals after searching for instructions that the user repeats.
    List,
    /// Apply a proposal. `digest` is the digest of the diff that the user saw.
    Apply { id: String, digest: String },
    Edit {
        id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<MemoryTarget>,
    },
    /// Discard a proposal permanently.
    Drop { id: String },
    /// Add a proposal on behalf of the user.
    Add { text: String, target: MemoryTarget },
}
