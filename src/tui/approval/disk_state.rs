//! Comparison of the change shown in a dialog with the file on disk.

use super::{Choice, Dialog};

/// Freshness of the shown change compared with the file on disk.
#[derive(Debug, Default)]
pub(crate) struct ProposalFreshness {
    pub staleness: Staleness,
    /// Whether the file on disk differs from the content on which the change is based.
    pub changed: bool,
}

/// State of a dialog whose change may no longer match the file on disk.
#[derive(Debug, Default)]
pub(crate) enum Staleness {
    /// The dialog shows the current change.
    #[default]
    AsShown,
    /// The change was updated just before it was to be applied, and the updated change has not been shown yet.
    Renewed,
    /// The change can no longer be applied. `before` contains the choices to restore if the file changes back.
    Outdated { before: Vec<Choice> },
    /// The updated proposal has been requested but has not arrived yet.
    Awaited,
}

impl ProposalFreshness {
    /// Returns whether the change was updated and the updated version has not been shown yet.
    pub(crate) fn is_unseen(&self) -> bool {
        matches!(self.staleness, Staleness::Renewed)
    }

    /// Returns whether approving would apply something other than the change that is shown.
    pub(crate) fn is_outdated(&self) -> bool {
        self.changed || !matches!(self.staleness, Staleness::AsShown)
    }
}

/// Returns whether the dialog's head must show that the file has changed.
pub(crate) fn is_change_visible(panel: &Dialog) -> bool {
    panel.kind.prompt().is_some_and(|prompt| {
        prompt.disk.changed || matches!(prompt.disk.staleness, Staleness::Outdated { .. } | Staleness::Awaited)
    })
}

/// Returns whether the dialog is waiting for an updated proposal.
pub(crate) fn is_awaited(panel: &Dialog) -> bool {
    panel.kind.prompt().is_some_and(|prompt| matches!(prompt.disk.staleness, Staleness::Awaited))
}
