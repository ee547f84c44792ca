//! Context window usage, and compactions that free space in it.

use serde::{Deserialize, Serialize};

/// Number of tokens in the next request, by category. Counts are estimated where the provider has not reported them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUse {
    pub model: String,
    /// Size of the context window in tokens, including the response. The policy may set a lower limit than the model's.
    pub window: u64,
    /// Number of tokens reserved for the response.
    pub reserved: u64,
    pub shares: Vec<ContextShare>,
    /// Number of tokens counted by the provider. All others are estimated.
    pub counted: u64,
    /// Estimated number of tokens that `/compact` would free.
    pub compactable: u64,
    /// Percentage of the context window at which the conversation is compacted automatically. Absent if it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacts_at_percent: Option<u64>,
}

impl ContextUse {
    pub fn used(&self) -> u64 {
        self.shares.iter().map(|share| share.tokens).sum()
    }
}

/// Share of the context window that one category uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextShare {
    /// Display name: `system prompt`, `instructions`, `tools`, `summary`, `your messages`, `responses`, `tool results`
    /// or `images`.
    pub name: String,
    pub tokens: u64,
    /// Number of items in this category.
    pub count: u64,
}

/// Cause of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionTrigger {
    /// The user requested it.
    Asked,
    /// The context window was nearly full.
    Threshold,
    /// The provider rejected the conversation as too long.
    TooLong,
}

/// Compaction, whose summary replaces older messages. The messages themselves remain in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    pub trigger: CompactionTrigger,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Summary text that replaces the messages.
    pub summary: String,
    /// Model that wrote the summary, if it differs from the model in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Number of messages that the summary replaced.
    pub summarised: u64,
    pub kept: u64,
    pub tokens_before: u64,
    pub tokens_after: u64,
}
