//! Comparison of the change in a dialog with the file on disk.

use super::{Choice, Dialog};

/// Relation between the shown change and the file on disk, and the last event about the file.
#[derive(Debug, Default)]
pub(crate) struct ProposalFreshness {
    pub staleness: Staleness,
    /// Whether the file differs from the one that the change was made for.
    pub changed: bool,
}

/// Whether the change in a dialog matches the file on disk.
#[derive(Debug, Default)]
pub(crate) enum Staleness {
    /// The shown change is the current one.
    #[default]
    AsShown,
    /// The change was updated immediately before it was applied, and the update has not been shown
    /// yet.
    Renewed,
    /// The change cannot be applied. The previous choices return if the file changes back.
    Outdated { before: Vec<Choice> },
    /// The user requested the updated proposal, which has not arrived yet.
    Awaited,
}

impl ProposalFreshness {
    /// Returns whether the change was updated and has not been shown yet.
    pub(crate) fn is_unseen(&self) -> bool {
        matches!(self.staleness, Staleness::Renewed)
    }

    /// Returns whether the shown change is not the one that an approval would apply.
    pub(crate) fn is_outdated(&self) -> bool {
        self.changed || !matches!(self.staleness, Staleness::AsShown)
    }
}

/// Returns whether the head shows that the file has changed.
pub(crate) fn is_change_visible(panel: &Dialog) -> bool {
    panel.kind.prompt().is_some_and(|prompt| {
        prompt.disk.changed || matches!(prompt.disk.staleness, Staleness::Outdated { .. } | Staleness::Awaited)
    })
}

/// Returns whether the dialog waits for an updated proposal.
pub(crate) fn is_awaited(panel: &Dialog) -> bool {
    panel.kind.prompt().is_some_and(|prompt| matches!(prompt.disk.staleness, Staleness::Awaited))
}
