//! Memory inbox for the model's proposals to change instruction files.

use crate::protocol::MemoryTarget;

/// Proposal from the model, which has no effect until the user applies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemorySuggestion {
    pub text: String,
    pub target: MemoryTarget,
    pub reason: Option<String>,
}

/// Result of adding a proposal to the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuggestionOutcome {
    Added,
    /// The inbox already contains an equivalent proposal.
    Merged,
    /// The instruction file already contains the instruction.
    AlreadyInFile,
    /// The user has already dropped, applied or undone an equivalent proposal.
    DecidedBefore,
}

/// Memory inbox of a workspace.
pub(crate) trait MemoryInbox: Send + Sync {
    /// Returns the text as it would be proposed.
    ///
    /// # Errors
    ///
    /// Returns the reason if the text is not a single plain instruction, or contains a secret.
    fn check(&self, text: &str) -> Result<String, String>;

    /// Adds a proposal, or merges it with an equivalent one.
    ///
    /// # Errors
    ///
    /// Returns the reason if the inbox is full or cannot be written.
    fn suggest(&self, suggestion: &MemorySuggestion) -> Result<SuggestionOutcome, String>;
}
