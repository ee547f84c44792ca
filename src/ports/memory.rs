//! Memory inbox, which receives the model's proposals for instruction files.

use crate::protocol::MemoryTarget;

/// Proposal by the model. It has no effect until the user applies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemorySuggestion {
    pub text: String,
    pub target: MemoryTarget,
    pub reason: Option<String>,
}

/// Result of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuggestionOutcome {
    Added,
    /// The inbox already has an equivalent proposal.
    Merged,
    /// The file already contains the instruction.
    AlreadyInFile,
    /// The user dropped, applied or undid such a proposal before.
    DecidedBefore,
}

/// The inbox of a workspace.
pub(crate) trait MemoryInbox: Send + Sync {
    /// Returns the text in the form in which it would be proposed.
    ///
    /// # Errors
    ///
    /// Returns an error with the reason if the text is not one plain instruction, or contains a
    /// secret.
    fn check(&self, text: &str) -> Result<String, String>;

    /// Adds a proposal, or merges it with an equivalent one.
    ///
    /// # Errors
    ///
    /// Returns an error with the reason if the inbox is full or cannot be written.
    fn suggest(&self, suggestion: &MemorySuggestion) -> Result<SuggestionOutcome, String>;
}
