//! Queued messages: typed while the agent works, stored until they are delivered.

use serde::{Deserialize, Serialize};

/// Queued message. It can be edited or removed until it is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "StoredMessage")]
pub struct QueuedMessage {
    /// ID, counted from 1 within a session and never reused.
    pub id: u64,
    pub text: String,
    /// Whether the message is delivered with the next step of the running task, instead of starting a new task.
    pub steer: bool,
}

/// Stored form of a message. Older versions stored only the text.
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
