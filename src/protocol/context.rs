//! Context window usage, and the compactions that freed space.

use serde::{Deserialize, Serialize};

/// Number of tokens of the next request by category, estimated where the provider has not counted them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUse {
    pub model: String,
    /// Size of the context window in tokens, including the response. The policy may set a lower
    /// limit than the model.
    pub window: u64,
    /// Number of tokens reserved for the response.
    pub reserved: u64,
    pub shares: Vec<ContextShare>,
    /// Number of tokens counted by the provider; all other tokens are estimated.
    pub counted: u64,
    /// Estimated number of tokens that `/compact` would free.
    pub compactable: u64,
    /// Percentage of the context window at which the conversation is compacted automatically; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacts_at_percent: Option<u64>,
}

impl ContextUse {
    pub fn used(&self) -> u64 {
        self.shares.iter().map(|share| share.tokens).sum()
    }
}

/// Part of the context window, by category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextShare {
    /// Display name: `system prompt`, `instructions`, `tools`, `summary`, `your messages`, `responses`, `tool results`,
    /// `images`.
    pub name: String,
    pub tokens: u64,
    /// Number of items.
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
    /// The provider reported that the conversation is too long.
    TooLong,
}

/// Summary that replaces messages. The messages remain in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    pub trigger: CompactionTrigger,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Text that replaces the messages.
    pub summary: String,
    /// Model that wrote it, if it is not the model in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Number of messages that the summary replaces, and number of messages that remain.
    pub summarised: u64,
    pub kept: u64,
    pub tokens_before: u64,
    pub tokens_after: u64,
}
