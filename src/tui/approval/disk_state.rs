//! Comparison of the change in a dialog with the file on disk.

use super::{Choice, Dialog};

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

/// Returns whether the head shows that the file has changed.
pub(crate) fn is_change_visible(panel: &Dialog) -> bool {
    panel.changed_on_disk || matches!(panel.disk, Staleness::Outdated { .. } | Staleness::Awaited)
}

/// Returns whether the dialog waits for an updated proposal.
pub(crate) fn is_awaited(panel: &Dialog) -> bool {
    matches!(panel.disk, Staleness::Awaited)
}
