//! Context window usage, and the compactions that freed space.

use serde::{Deserialize, Serialize};

/// What the next request holds, in tokens as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUse {
    pub model: String,
    /// All the model takes, its answer included; the policy may say less than the model.
    pub window: u64,
    /// Kept free for the answer.
    pub reserved: u64,
    pub shares: Vec<ContextShare>,
    /// How much of it the provider counted itself; the rest is estimated.
    pub counted: u64,
    /// Tokens that `/compact` would free, as far as that can be foretold.
    pub compactable: u64,
    /// The share of the window at which it is compacted without being asked, in percent; none where it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacts_at_percent: Option<u64>,
}

impl ContextUse {
    pub fn used(&self) -> u64 {
        self.shares.iter().map(|share| share.tokens).sum()
    }
}

/// One part of what fills it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextShare {
    /// For people: `system prompt`, `instructions`, `tools`, `summary`, `your messages`, `answers`, `tool results`, `images`.
    pub name: String,
    pub tokens: u64,
    /// How many of them there are.
    pub count: u64,
}

/// Why room was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionTrigger {
    /// The person asked for it.
    Asked,
    /// The window was nearly full.
    Threshold,
    /// The provider said that it did not fit.
    TooLong,
}

/// A summary in the place of messages. The messages stay in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    pub trigger: CompactionTrigger,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// What stands in their place.
    pub summary: String,
    /// How many messages it stands for, and how many are kept as they are.
    pub summarised: u64,
    pub kept: u64,
    pub tokens_before: u64,
    pub tokens_after: u64,
}
