//! IDs, each with its own type.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

id!(/// Workspace directory that sessions belong to: the hex hash of its real path.
    WorkspaceId);
id!(/// Session: 32 hex digits.
    SessionId);
id!(/// Task: one prompt and all resulting steps, until the model is done.
    TaskId);
id!(/// Step: one request to the model, and the tools it called.
    StepId);
id!(/// Approval request.
    ApprovalId);
id!(/// Tool call; the provider's ID, sent back unchanged.
    CallId);
id!(/// Message of the thread.
    MessageId);

impl StepId {
    /// Returns the number of the step, counted over the session.
    pub fn number(&self) -> u64 {
        self.0.rsplit('_').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}
