//! Queued messages: typed while the agent works, until they are delivered.

use serde::{Deserialize, Serialize};

/// One message that waits. It can be changed and taken back as long as it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Stored")]
pub struct Waiting {
    /// Counted from 1 in a session, never used twice.
    pub id: u64,
    pub text: String,
    /// For the next step of the running task; otherwise for after the task.
    pub steer: bool,
}

/// As stores have it: texts alone are those of an older version.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Whole {
        id: u64,
        text: String,
        #[serde(default)]
        steer: bool,
    },
}

impl From<Stored> for Waiting {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Text(text) => Self { id: 0, text, steer: false },
            Stored::Whole { id, text, steer } => Self { id, text, steer },
        }
    }
}
