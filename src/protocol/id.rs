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

id!(/// A directory that sessions belong to: the hex hash of its real path.
    WorkspaceId);
id!(/// One conversation: 32 hex digits.
    SessionId);
id!(/// One prompt and all that follows from it, until the model is done.
    TaskId);
id!(/// One request to the model and the tools it called.
    StepId);
id!(/// One question to the person.
    ApprovalId);
id!(/// A tool call, as the provider named it; it goes back unchanged.
    CallId);
id!(/// A message of the thread.
    MessageId);

impl StepId {
    /// Returns the number of the step, counted over the session.
    pub fn number(&self) -> u64 {
        self.0.rsplit('_').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}
