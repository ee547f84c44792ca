//! Queued messages, which the user typed while the agent was working and which are stored until delivery.

use serde::{Deserialize, Serialize};

/// Message waiting for delivery. Until then, it can be edited or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "StoredMessage")]
pub struct QueuedMessage {
    /// ID that is unique within the session. IDs start at 1 and are never reused.
    pub id: u64,
    pub text: String,
    /// Whether to deliver the message with the next step of the running task instead of starting a new task with it.
    pub steer: bool,
}

/// Stored form of a queued message. Older versions stored only its text.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredMessage {
    Text(String),
    Whole {
        id: u64,
        text: String,
        #[serde(default)]
        steer: bool,
    },
}

impl From<StoredMessage> for QueuedMessage {
    fn from(stored: StoredMessage) -> Self {
        match stored {
            StoredMessage::Text(text) => Self { id: 0, text, steer: false },
            StoredMessage::Whole { id, text, steer } => Self { id, text, steer },
        }
    }
}
